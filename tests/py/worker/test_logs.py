"""One log line for each request and each delivery, with ids."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from http_support import Api, api, master  # noqa: F401
from jqmaster.server import logs


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> list[logs.Fields]:
    """The lines that are written from now on."""
    caplog.set_level(logging.INFO, "jqmaster.request")
    caplog.set_level(logging.INFO, "jqmaster.delivery")
    return Lines(caplog)  # type: ignore[return-value]


class Lines:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __iter__(self) -> Any:
        return (one.msg for one in self._caplog.records if isinstance(one.msg, logs.Fields))

    def last(self) -> logs.Fields:
        *_, line = self
        return line


async def test_a_request_has_a_line_with_its_id_status_and_time(api: Api, lines: Any) -> None:
    answer = await api.get("/queues")
    [line] = lines
    assert line["id"] == answer.headers["x-request-id"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/queues", 200)
    assert line["ms"] > 0


@pytest.mark.parametrize("bad", ["", "a b", "x" * 129, "ä", "a\tb"])
async def test_an_id_that_is_not_fit_for_a_log_is_replaced(api: Api, lines: Any, bad: str) -> None:
    answer = await api.get("/queues", x_request_id=bad)
    assert re.fullmatch(r"[0-9a-f]{10}-[0-9a-f]+", answer.headers["x-request-id"])


def test_a_line_of_text_cannot_be_forged() -> None:
    line = logs.Fields({"path": '/a b="1"\nx=2', "worker": "é", "status": 200, "ms": 1.5})
    assert str(line) == r'path="/a b=\"1\"\nx=2" worker="\u00e9" status=200 ms=1.5'
