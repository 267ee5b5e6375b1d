"""A worker takes only what can start, and is listed."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jqmaster import JQ, JobError
from jqmaster.testing import working
from processes import MasterProcess, Process

jobs = JQ(max_retry=0)
go_on = threading.Event()


@jobs.job(max_runtime=1)
def blocks() -> None:
    go_on.wait(30)


@jobs.job(max_runtime=5)
def plain(number: int) -> int:
    return number


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    go_on.clear()
    with jobs.using(redis_url, namespace):
        yield jobs
    go_on.set()


def until(what: Any, within_s: float = 60) -> None:
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_thread_that_runs_on_keeps_its_slot(jq: JQ, caplog: pytest.LogCaptureFixture) -> None:
    with working(jq, concurrency=1), caplog.at_level(logging.WARNING):
        with pytest.raises(JobError, match="max_runtime"):
            blocks.enqueue().result(timeout=60)
        next_one = plain.enqueue(1)
        time.sleep(0.5)
        assert next_one.status() == "queued", "it could not start"
        go_on.set()
        assert next_one.result(timeout=60) == 1
    assert "runs on, and its thread is not free before it returns: 1 of 1" in caplog.text


@pytest.mark.parametrize("by", ["redis", "master"])
def test_a_worker_that_is_not_registered_announces_itself(
    redis_url: str, namespace: str, tmp_path: Path, by: str
) -> None:
    jq = JQ(redis_url, namespace=namespace)
    with contextlib.ExitStack() as stack:
        where = f"{redis_url!r}, namespace={namespace!r}"
        if by == "master":
            master = stack.enter_context(MasterProcess("--redis", redis_url, "--namespace", namespace))
            where = repr(master.url)
        (tmp_path / "program.py").write_text(
            f"from jqmaster import JQ\njq = JQ({where})\n"
            "@jq.job\ndef here() -> None: ...\n@jq.job\ndef there() -> None: ...\n"
        )
        options = ("--name", "w", "--concurrency", "3")
        with Process("jqmaster.cli", "work", "program:jq", *options, ready="is ready", folder=tmp_path) as worker:
            until(lambda: list(jq.each("workers")))
            [shown] = jq.each("workers")
            told = {name: shown[name] for name in ("id", "state", "pid", "host", "knows", "max_jobs", "held")}
            assert told == {
                "id": "w", "state": "pulling", "pid": worker.pid, "host": socket.gethostname(),
                "knows": ["here", "there"], "max_jobs": 3, "held": 0,
            }  # fmt: skip
            worker.signal()
            worker.ends()
        assert list(jq.each("workers")) == []
