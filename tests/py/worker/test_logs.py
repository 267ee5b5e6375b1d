"""One log line for each request and each delivery, with ids."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from http_support import Api, api, master  # noqa: F401
from jqmaster import JsonLines
from jqmaster.engine.engine import Engine
from jqmaster.server import logs
from parts import REFUSED, answers, came_to, dispatch_of, enqueue, eventually, worker


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
    assert line.what == "request"
    assert line["id"] == answer.headers["x-request-id"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/queues", 200)
    assert line["ms"] > 0


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("PUT", "/queues", 405), ("POST", "/job", 400)]
)
async def test_refused_requests_have_a_line_as_well(api: Api, lines: Any, method: str, path: str, status: int) -> None:
    answer = await api(method, path, raw=b"\xc1")
    [line] = lines
    assert (line["path"], line["status"]) == (path, status)
    assert line["id"] == answer.headers["x-request-id"]


async def test_a_body_that_is_too_large_has_a_line(api: Api, lines: Any) -> None:
    await api.post("/job", raw=b"\xc4" * (2 << 20))
    [line] = lines
    assert line["status"] == 413


async def test_a_requests_id_is_kept(api: Api, lines: Any) -> None:
    answer = await api.get("/queues", x_request_id="abc-1")
    assert answer.headers["x-request-id"] == "abc-1"
    assert lines.last()["id"] == "abc-1"


@pytest.mark.parametrize("bad", ["", "a b", "x" * 129, "ä", "a\tb"])
async def test_an_id_that_is_not_fit_for_a_log_is_replaced(api: Api, lines: Any, bad: str) -> None:
    answer = await api.get("/queues", x_request_id=bad)
    assert re.fullmatch(r"[0-9a-f]{10}-[0-9a-f]+", answer.headers["x-request-id"])


async def test_nothing_is_written_unless_it_is_asked_for(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    answer = await api.get("/queues")
    assert not [one for one in caplog.records if isinstance(one.msg, logs.Fields)]
    assert answer.headers["x-request-id"]


async def test_each_delivery_has_a_line(engine: Engine, lines: Any) -> None:
    dispatch = dispatch_of(engine)
    dispatch.start()
    try:
        async with worker(engine, answers(202), queues=["mail"]) as stub:
            job_id = await enqueue(engine, "mail")
            await eventually(lambda: came_to(dispatch, "accepted"))
        async with worker(engine, answers(404), queues=["report"]):
            await enqueue(engine, "report")
            await eventually(lambda: came_to(dispatch, *REFUSED))
    finally:
        await dispatch.stop()
    taken, refused = lines
    assert taken.what == "delivery"
    assert taken["job"] == f"{job_id}/1"
    assert taken["worker"] == stub.id
    assert (taken["outcome"], refused["outcome"]) == ("accepted", "unknown")
    assert taken["ms"] > 0


def test_a_line_of_text_cannot_be_forged() -> None:
    line = logs.Fields(
        "request", {"path": '/a b="1"\nx=2', "worker": "é", "status": 200, "ms": 1.5, "jobs": ["a", "b"]}
    )
    assert str(line) == r'path="/a b=\"1\"\nx=2" worker="\u00e9" status=200 ms=1.5 jobs=a,b'


def test_as_json_the_pairs_are_members() -> None:
    record = logging.makeLogRecord({"msg": logs.Fields("request", {"status": 200, "jobs": ["a"]}), "levelname": "INFO"})
    line = json.loads(JsonLines().format(record))
    assert line["message"] == "request"
    assert (line["status"], line["jobs"]) == (200, ["a"])


def test_a_served_master_writes_lines_when_told(redis_url: str, tmp_path: Any) -> None:
    import subprocess
    import sys
    import urllib.request

    command = [sys.executable, "-m", "jqmaster.cli", "serve", "--redis", redis_url, "--namespace", "{logs}"]
    command += ["--port", "0", "--access-log", "--log-format", "json"]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["message"].split()[-1]
        with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
            request_id = answer.headers["x-request-id"]
    finally:
        process.terminate()
        process.wait(60)
    found = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["id"] for line in found if line["logger"] == "jqmaster.request"] == [request_id]
