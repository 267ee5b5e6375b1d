"""A failing sequence gets smaller, and keeps to what failed."""

import pytest

from driving.driver import Driver
from driving.run import replay, shrink
from model.common import ErrorReply
from servers import RedisServer


class Wrong(Driver):
    """Talks to an engine with faults: by operation, what changes its reply."""

    faults = ()

    def call(self, script, **fields):
        reply = super().call(script, **fields)
        return self.faults[script](reply, fields) if script in self.faults else reply


@pytest.fixture(scope="module")
def driver():
    with RedisServer() as server:
        driver = Wrong(server.socket)
        yield driver
        driver.close()


def shrunk(driver, operations):
    return shrink(driver, operations, replay(driver, operations))


def refuse_tags(reply, fields):
    return ErrorReply("INVALID", "job.tags", "no tags, please") if "tags" in fields["job"] else reply


def test_it_keeps_to_the_refusal(driver):
    """Not to the others that come of leaving out what is required."""
    driver.faults = {"schedule": refuse_tags}
    fields = {"id": "s", "every": 60, "catch_up": False, "argument": b"\xc0"}
    schedule = ["schedule", fields | {"job": {"name": "a", "tags": ["x"]}}, 0]
    small = shrunk(driver, [["tick", {}, 0], schedule])
    assert small == [["schedule", {"id": "s", "job": {"tags": []}}, 0]]
