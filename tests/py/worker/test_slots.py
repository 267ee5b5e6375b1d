"""A worker takes only what can start: slots of processes and threads apart, and threads that run on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
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


@jobs.job(process=True)
def is_there() -> None: ...


@jobs.job(process=True, max_runtime=10)
def computes(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@jobs.job(max_runtime=1)
def blocks() -> None:
    go_on.wait(30)


@jobs.job(max_runtime=5)
def plain(number: int) -> int:
    return number


@jobs.job
async def quick(number: int) -> int:
    await asyncio.sleep(0)
    return number


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    go_on.clear()
    with jobs.using(redis_url, namespace):
        yield jobs
    go_on.set()


def states(handles: list[Any]) -> list[str]:
    return sorted(one.status() for one in handles)


def until(what: Any, within_s: float = 60) -> None:
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_jobs_for_processes_wait_in_their_queue_for_one(jq: JQ) -> None:
    with working(jq, processes=1):
        assert is_there.enqueue().join(timeout=60) == "done"  # to start a process takes long on a busy machine
        several = computes.map([2.7, 2.7, 2.7, 2.7])  # longer than their max_runtime, in all
        until(lambda: "running" in states(several))
        assert "queued" in states(several)
        assert jq.gather(quick.map(range(20)), timeout=60) == list(range(20)), "others go on"
        assert states(several).count("running") <= 1
        assert len(set(jq.gather(several, timeout=60))) == 1


def test_a_thread_that_runs_on_keeps_its_slot(jq: JQ, caplog: pytest.LogCaptureFixture) -> None:
    with working(jq, concurrency=1), caplog.at_level(logging.WARNING):
        with pytest.raises(JobError, match="max_runtime"):
            blocks.enqueue().result(timeout=60)
        next_one = plain.enqueue(1)
        time.sleep(0.5)
        assert next_one.status() == "queued", "it could not start"
        go_on.set()
        assert next_one.result(timeout=60) == 1
    assert "runs on in its thread, which is not free before it returns: 1 of 1" in caplog.text


def test_threads_apart_leave_room_for_coroutines(jq: JQ) -> None:
    with working(jq, concurrency=1, threads=1):
        blocked = blocks.enqueue()
        until(lambda: blocked.status() == "running")
        assert quick.enqueue(1).result(timeout=60) == 1
        waiting = plain.enqueue(2)
        time.sleep(0.3)
        assert waiting.status() == "queued"
        go_on.set()
        assert waiting.result(timeout=60) == 2


def test_a_queue_is_for_one_kind_of_slots() -> None:
    mixed = JQ(queue="all")
    mixed.job(len)
    mixed.job(process=True)(os.getpid)
    with pytest.raises(ValueError, match=r"queue all has jobs for several kinds of slots \(others, processes\)"):
        mixed.worker(processes=1).options()
    with pytest.raises(ValueError, match="processes, threads"):
        mixed.worker(["al*"], processes=1, threads=1).options()
    assert not mixed.worker(concurrency=4).options().beside
    with pytest.raises(ValueError, match="workers that pull"):
        jobs.worker(processes=1, push=True).options()


def test_one_process_has_them_all_and_ends_them_all(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"""
import os
from jqmaster import JQ

jq = JQ({redis_url!r}, namespace={namespace!r})

@jq.job(process=True)
def there() -> int:
    return os.getppid()

@jq.job
def here() -> int:
    return os.getpid()
"""
    )
    options = ("--processes", "1", "--name", "w", "--register")
    jq = JQ(redis_url, namespace=namespace)
    with Process("jqmaster.cli", "work", "program:jq", *options, ready="is ready", folder=tmp_path) as worker:
        pids = jq.gather([jq.task("there").enqueue(), jq.task("here").enqueue()], timeout=60)
        assert pids == [worker.pid] * 2
        listed = {one["name"]: one for one in jq.each("workers")}
        assert set(listed) == {"w", "w.processes"}
        assert (listed["w"]["pid"], listed["w"]["knows"]) == (worker.pid, ["here", "there"])
        jq.operations.worker(listed["w.processes"]["id"], "stop")
        until(lambda: worker.has_ended)
    assert list(jq.each("workers")) == []


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
            until(lambda: list(jq.each("workers", others=True)))
            [shown] = jq.each("workers", others=True)
            told = {name: shown[name] for name in ("id", "state", "pid", "host", "knows", "max_jobs", "held")}
            assert told == {
                "id": "w", "state": "pulling", "pid": worker.pid, "host": socket.gethostname(),
                "knows": ["here", "there"], "max_jobs": 3, "held": 0,
            }  # fmt: skip
            worker.signal()
            worker.ends()
        assert list(jq.each("workers", others=True)) == []
