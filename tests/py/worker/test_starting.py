"""What jobs start, forks, pools and programs: its signals are its own, and it goes with the process of its job."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jqmaster import JQ, JobError
from jqmaster.testing import working
from processes import Process
from starting_jobs import coroutine, jobs, leaves, process, thread
from topologies import until

LONG_S = 60
SQUARES = [0, 1, 4, 9]
FORKED: dict[str, Any] = {"child returns": 0, "child raises": 1, "child exits": 5}
STARTED: dict[str, Any] = {"process that ends": 0, "program": -signal.SIGTERM, "handler": 7}
SPAWNED: list[tuple[Any, str, Any]] = [
    (coroutine, "spawned process", -signal.SIGTERM),
    (thread, "spawned pool", SQUARES),
    (process, "spawned executor", SQUARES),
    (thread, "process", -signal.SIGTERM),
]
IN_A_PROCESS: dict[str, Any] = {"process": -signal.SIGTERM, "pool": SQUARES, "executor": SQUARES}

WORKS_AND_FORKS = """
import os, signal, sys
from jqmaster import JQ

url, namespace = sys.argv[1:]
jq = JQ(url, namespace=namespace)

@jq.job
async def stop():
    os.kill(os.getpid(), signal.SIGTERM)

stop.enqueue()
jq.worker().run()
if os.fork():
    os.wait()
"""


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


@pytest.fixture
def worker(jq: JQ) -> Iterator[Process]:
    where = ("--url", jq.url, "--namespace", jq.namespace)
    with Process("jqmaster.cli", "work", "starting_jobs:jobs", *where, ready="is ready") as process:
        yield process


def test_what_jobs_start_is_theirs(worker: Process) -> None:
    runs = [
        (task, how, becomes) for how, becomes in (FORKED | STARTED).items() for task in (coroutine, thread, process)
    ]
    for task, how, becomes in [*runs, *SPAWNED, *((process, *one) for one in IN_A_PROCESS.items())]:
        assert task.enqueue(how).result(timeout=LONG_S) == becomes, (how, task.name)
    assert not worker.has_ended
    assert worker.text.count("ValueError: in the child") == 3, "each child says why it ended"
    assert worker.text.count("logged in a child") == 9
    assert worker.text.count("is ready") == 1 and "failed in attempt" not in worker.text


def _started(path: Path) -> list[int]:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(number) for number in path.read_text().split()]


def _are_gone(pids: list[int]) -> None:
    def is_gone(pid: int) -> bool:
        stat = Path(f"/proc/{pid}/stat")
        try:
            return ") Z" in stat.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(lambda: all(is_gone(pid) for pid in pids))


@pytest.mark.parametrize("how", ["runs", "dies"])
def test_what_a_job_started_goes_with_its_process(jq: JQ, how: str, tmp_path: Path) -> None:
    handle = leaves.enqueue(how, str(tmp_path / "pids"))
    with working(jq):
        pids = _started(tmp_path / "pids")
        if how == "runs":
            handle.cancel()
        else:
            with pytest.raises(JobError, match="SIGKILL"):
                handle.result(timeout=LONG_S)
        _are_gone(pids)


def test_a_program_whose_worker_has_stopped_forks_as_others_do(redis_url: str, namespace: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WORKS_AND_FORKS, redis_url, namespace], capture_output=True, text=True, timeout=LONG_S
    )
    assert (run.returncode, run.stderr) == (0, "")
