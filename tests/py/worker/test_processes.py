"""Jobs in processes of their own: hooks, notes, logs, deaths, hangs, renewal."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jqmaster import JQ, JobError
from jqmaster.testing import working
from process_jobs import (
    dies_before_its_child,
    fails,
    fans_out,
    hangs,
    hangs_here,
    jobs,
    leaves_a_thread,
    listens,
    passes,
    sleeps,
    stuck,
    tells,
    where_it_runs,
)
from processes import Process
from topologies import until


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


def test_a_job_runs_in_a_process_with_its_hooks(jq: JQ) -> None:
    handle = where_it_runs.enqueue(7)
    jq.burst()
    pid, number, name, state = handle.result(timeout=60)
    assert pid != os.getpid() and (number, name) == (7, "where_it_runs")
    assert state == pid, "the lifespan was entered there"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("plain", "ValueError: plain"),
        ("awkward", "Awkward: ab"),
        ("killed", "ProcessDied: its process died: SIGKILL, as for want of memory"),
        ("segfault", "ProcessDied: its process died: SIGSEGV"),
        ("exit", "ProcessDied: its process died: exit code 3"),
        ("unfit", "the result cannot leave its process"),
    ],
)
def test_what_goes_wrong_there_is_told(jq: JQ, how: str, said: str) -> None:
    handle = fails.enqueue(how)
    jq.burst(raises=False)
    assert said in handle.document()["message"]


def test_a_job_there_runs_again_when_others_have_ended(jq: JQ) -> None:
    handle = fans_out.enqueue()
    jq.burst()
    assert handle.result(timeout=60) == [3, 4, 2, 2]


def test_a_failure_there_says_when_to_retry(jq: JQ) -> None:
    handle = fails.options(max_retry=1).enqueue("busy")
    with working(jq):
        until(lambda: handle.status() == "retrying")
    document = handle.document()
    assert 500 <= (document["due_ms"] - document["started_ms"]) / 1000 < 560


def test_a_death_is_noticed_though_a_child_holds_the_pipe(jq: JQ) -> None:
    dies = dies_before_its_child.enqueue()
    with working(jq), pytest.raises(JobError, match="SIGKILL"):
        dies.result(timeout=60)


@pytest.mark.faults
def test_a_process_that_died_idle_costs_no_attempt(jq: JQ) -> None:
    with working(jq):
        pid = sleeps.enqueue(0).result(timeout=60)
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        handle = sleeps.enqueue(0)
        assert handle.result(timeout=60) != pid
    assert handle.document()["attempt"] == 1


@pytest.mark.faults
def test_a_death_is_of_one_job_alone(jq: JQ) -> None:
    neighbours = sleeps.map([2, 2])
    dies = fails.enqueue("killed")
    with working(jq):
        with pytest.raises(JobError, match="SIGKILL"):
            dies.result(timeout=60)
        assert [one.document()["status"] for one in neighbours] == ["running", "running"], "told at once"
        assert len({one.result(timeout=60) for one in neighbours}) == 2
    assert [one.document()["attempt"] for one in neighbours] == [1, 1]


@pytest.mark.faults
def test_what_hangs_is_ended_and_others_go_on(jq: JQ) -> None:
    hanging = [hangs.enqueue() for _ in range(4)]
    with working(jq, concurrency=4):
        for one in hanging:
            with pytest.raises(JobError, match="max_runtime"):
                one.result(timeout=60)
        for one in sleeps.map([0, 0, 0, 0]):
            one.result(timeout=60)


def test_a_cancelled_job_ends_with_its_process(jq: JQ) -> None:
    long = sleeps.enqueue(600)
    with working(jq):
        while long.document()["status"] != "running":
            time.sleep(0.05)
        time.sleep(1)  # its process is there
        before = {one.pid for one in multiprocessing.active_children()}
        long.cancel()
        until = time.monotonic() + 60
        while before & {one.pid for one in multiprocessing.active_children()}:
            assert time.monotonic() < until, "its process runs on"
            time.sleep(0.05)


@pytest.mark.parametrize("how", ["asks", "says", "waits"])
def test_a_function_there_learns_that_its_job_is_given_up(jq: JQ, how: str, tmp_path: Path) -> None:
    handle = listens.enqueue(how, str(tmp_path / "said"))
    with working(jq, concurrency=1):
        while not (tmp_path / "said").exists():
            time.sleep(0.02)
        handle.cancel()
        other = where_it_runs.enqueue(1)
        assert other.result(timeout=60)[1] == 1
    said = {"asks": "True", "says": "it is given up", "waits": "started"}[how]
    assert (tmp_path / "said").read_text() == said
    assert not multiprocessing.active_children()


def test_a_coroutine_is_cancelled_at_max_runtime(jq: JQ, tmp_path: Path) -> None:
    handle = hangs_here.enqueue(str(tmp_path / "said"))
    with working(jq), pytest.raises(JobError, match="max_runtime"):
        handle.result(timeout=60)
    assert (tmp_path / "said").read_text() == "cancelled"


def test_notes_and_log_lines_come_back(jq: JQ, caplog: pytest.LogCaptureFixture) -> None:
    handle = tells.enqueue(4)
    with working(jq), caplog.at_level(logging.WARNING):
        assert handle.result(timeout=60) == [4, 10], "the second attempt began at the checkpoint"
    document = handle.document()
    assert (document["progress"], document["progress_message"]) == (10, "on the way")
    assert {"number 4", "number 10"} <= {record.getMessage() for record in caplog.records}


def test_what_a_job_leaves_behind_does_not_speak_for_the_next(jq: JQ) -> None:
    with working(jq, concurrency=1):
        pid = leaves_a_thread.enqueue().result(timeout=60)
        later = sleeps.enqueue(0.5)
        assert later.result(timeout=60) == pid
    assert "progress" not in later.document()


def test_a_process_is_used_again_and_renewed(jq: JQ) -> None:
    def pids(**given: Any) -> list[int]:
        found = []
        with working(jq, concurrency=1, **given):
            for _ in range(4):
                found.append(sleeps.enqueue(0).result(timeout=60))
        return found

    assert len(set(pids())) == 1
    assert len(set(pids(process_jobs=3))) == 2
    assert len(set(pids(process_memory=1))) == 4


@pytest.mark.faults
def test_a_shutdown_hook_that_hangs_there_holds_nobody_up(redis_url: str, namespace: str) -> None:
    with stuck.using(redis_url, namespace):
        passes.enqueue()
        stuck.burst()
    assert not multiprocessing.active_children()


def test_processes_end_with_a_worker_that_is_killed(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"""
import os, pathlib, time
from jqmaster import JQ

jq = JQ({redis_url!r}, namespace={namespace!r})

@jq.job(process=True)
def stays():
    pathlib.Path("pid.tmp").write_text(str(os.getpid()))
    os.rename("pid.tmp", "pid")
    time.sleep(600)
"""
    )
    with Process("jqmaster.cli", "work", "program:jq", ready="is ready", folder=tmp_path) as worker:
        JQ(redis_url, namespace=namespace).task("stays").enqueue()
        until = time.monotonic() + 60
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        pid = int((tmp_path / "pid").read_text())
        worker.signal(signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            assert time.monotonic() < until + 20, "it outlives its worker"
            time.sleep(0.05)


def test_async_functions_run_in_no_process() -> None:
    async def wait() -> None: ...

    with pytest.raises(TypeError, match="process=True is for plain functions"):
        JQ().job(process=True)(wait)
    with pytest.raises(TypeError, match="at the top of a module"):
        JQ().job(process=True)(lambda: None)
