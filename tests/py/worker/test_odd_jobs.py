"""A job that does odd things to the process that it runs in fails, at most: its worker works on, and stops when it is
told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jqmaster import JQ, JobError
from odd_jobs import coroutine, jobs, logs_where_nobody_reads, odd, thread, waits_for_a_thread, writes
from processes import Process
from topologies import until

LONG_S = 60
ENDS_S = 30
HOWS = (
    "cancels all tasks", "cancels all tasks, twice", "takes signals", "drops signals", "ignores signals",
    "closes streams", "drops streams", "logs nowhere", "filters", "fails later where nobody can be told",
    "forks and waits",
)  # fmt: skip


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


def worker(jq: JQ, *options: str, ready: str = "is ready") -> Process:
    where = ("--url", jq.url, "--namespace", jq.namespace, "--stop-timeout", "1s")
    return Process("jqmaster.cli", "work", "odd_jobs:jobs", *where, *options, ready=ready)


@pytest.mark.parametrize("how", HOWS)
def test_a_worker_works_on_whatever_a_job_does_to_its_process(how: str, jq: JQ) -> None:
    with worker(jq) as one:
        with suppress(JobError):
            odd.enqueue(how).result(timeout=LONG_S)
        jq.enqueue("nobody knows it", queue="odd")  # it is given back, which is logged
        for task in (coroutine, thread) * 2:
            handle = task.enqueue()
            assert handle.result(timeout=LONG_S) == 1
            assert handle.document()["attempt"] == 1
        assert not one.has_ended
        one.signal()
        assert one.ends(ENDS_S) == 0


def test_where_no_thread_can_be_started_its_job_fails_and_does_not_begin_later(jq: JQ, tmp_path: Path) -> None:
    with worker(jq) as one:
        odd.enqueue("leaves no threads").join(timeout=LONG_S)
        with pytest.raises(JobError, match="can't start new thread"):
            writes.enqueue(str(tmp_path / "failed")).result(timeout=LONG_S)
        odd.enqueue("leaves threads").join(timeout=LONG_S)
        assert writes.enqueue(str(tmp_path / "done")).result(timeout=LONG_S) is None
        odd.enqueue("leaves no threads").join(timeout=LONG_S)
        one.signal()
        assert one.ends(ENDS_S) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


@pytest.mark.parametrize("way", ["signal", "request"])
def test_a_thread_of_asyncio_s_own_does_not_outlive_its_job_s_return(way: str, jq: JQ, tmp_path: Path) -> None:
    with worker(jq, "--register") as one:
        handle = waits_for_a_thread.enqueue(str(tmp_path / "begun"))
        until((tmp_path / "begun").exists)
        if way == "signal":
            one.signal()
        else:
            [listed] = [document for document in jq.each("workers") if document["pid"] == one.pid]
            jq.operations.worker(listed["id"], request="stop")
        assert one.ends(ENDS_S) == 0
    assert handle.status() in ("scheduled", "queued") and handle.document()["retry_count"] == 0


def test_a_worker_whose_log_nobody_reads_stops(jq: JQ, tmp_path: Path) -> None:
    with worker(jq) as one:
        logs_where_nobody_reads.enqueue(str(tmp_path / "begun"))
        until((tmp_path / "begun").exists)
        jq.enqueue("nobody knows it", queue="odd")
        one.signal()
        assert one.ends(ENDS_S) == 0
