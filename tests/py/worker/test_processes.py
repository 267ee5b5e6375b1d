"""Jobs in processes of their own: lifespans, notes, logs, deaths, hangs, renewal, and the server that they ask."""

import contextlib
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
    asks_dependencies,
    broken,
    by_another_name,
    dies_before_its_child,
    fails,
    fans_out,
    gives,
    hangs,
    here,
    jobs,
    leaves_a_thread,
    listens,
    never_begins,
    sleeps,
    tells,
    where,
    where_in_thread,
    where_it_runs,
)
from processes import Process
from topologies import until

LONG_S = 60


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


def children(of: int = os.getpid()) -> set[int]:
    """The processes for jobs that a worker has."""
    found = set()
    for file in Path(f"/proc/{of}/task").glob("*/children"):
        for child in file.read_text().split():
            with contextlib.suppress(OSError):
                if "worker.process" in Path(f"/proc/{child}/cmdline").read_text():
                    found.add(int(child))
    return found


def test_a_job_runs_in_a_process_with_its_lifespan(jq: JQ) -> None:
    handle = where_it_runs.enqueue(7)
    jq.burst()
    pid, number, name, state = handle.result(timeout=LONG_S)
    assert pid != os.getpid() and (number, name) == (7, "where_it_runs")
    assert state == pid, "the lifespan was entered there"


def test_what_follows_leaves_its_process(jq: JQ) -> None:
    parts = fans_out.enqueue()
    follows, released = gives.enqueue("follow-up"), gives.enqueue("released")
    retried = fails.options(max_retry=1).enqueue("busy")
    with working(jq):
        assert parts.result(timeout=LONG_S) == [3, 4, 2, 2]
        assert follows.result(timeout=LONG_S) == 1
        until(lambda: released.document()["attempt"] > 1)
        until(lambda: retried.status() == "retrying")
    document = retried.document()
    assert 500 <= (document["due_ms"] - document["started_ms"]) / 1000 < 560


def test_a_death_is_noticed_though_a_child_holds_the_pipe(jq: JQ) -> None:
    dies = dies_before_its_child.enqueue()
    with working(jq), pytest.raises(JobError, match="SIGKILL"):
        dies.result(timeout=LONG_S)


@pytest.mark.faults
def test_a_process_that_died_idle_costs_no_attempt(jq: JQ) -> None:
    with working(jq):
        pid = sleeps.enqueue(0).result(timeout=LONG_S)
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        handle = sleeps.enqueue(0)
        assert handle.result(timeout=LONG_S) != pid
    assert handle.document()["attempt"] == 1


@pytest.mark.faults
def test_what_dies_or_hangs_is_ended_and_others_go_on(jq: JQ) -> None:
    neighbour, dies = sleeps.enqueue(2), fails.enqueue("killed")
    hanging = [hangs.enqueue() for _ in range(2)]
    with working(jq, concurrency=4):
        with pytest.raises(JobError, match="SIGKILL"):
            dies.result(timeout=LONG_S)
        for handle in hanging:
            with pytest.raises(JobError, match="max_runtime"):
                handle.result(timeout=LONG_S)
        for handle in (neighbour, *sleeps.map([0, 0, 0, 0])):
            handle.result(timeout=LONG_S)
    assert neighbour.document()["attempt"] == 1


@pytest.mark.parametrize("how", ["asks", "says", "waits"])
def test_a_function_there_learns_that_its_job_is_given_up_and_ends(jq: JQ, how: str, tmp_path: Path) -> None:
    handle = listens.enqueue(how, str(tmp_path / "said"))
    with working(jq, concurrency=1):
        until(lambda: (tmp_path / "said").exists())
        [pid] = children()
        handle.cancel()
        until(lambda: pid not in children())
        other = where_it_runs.enqueue(1)
        assert other.result(timeout=LONG_S)[1] == 1
    said = {"asks": "True", "says": "it is given up", "waits": "started"}[how]
    assert (tmp_path / "said").read_text() == said
    assert not children()


def test_notes_come_back_and_log_lines_are_written(jq: JQ, capfd: pytest.CaptureFixture[str]) -> None:
    handle = tells.enqueue(4)
    with working(jq):
        assert handle.result(timeout=LONG_S) == [4, 10], "the second attempt began at the checkpoint"
    document = handle.document()
    assert (document["progress"], document["progress_message"]) == (10, "on the way")
    assert f"[{handle.id}/2] number 10" in capfd.readouterr().err


def test_what_a_job_leaves_behind_does_not_speak_for_the_next(jq: JQ) -> None:
    with working(jq, concurrency=1):
        pid = leaves_a_thread.enqueue().result(timeout=LONG_S)
        later = sleeps.enqueue(0.5)
        assert later.result(timeout=LONG_S) == pid
    assert "progress" not in later.document()


def test_a_process_is_used_again_and_renewed(jq: JQ) -> None:
    def pids(**options: Any) -> int:
        with working(jq, concurrency=1, **options):
            return len({sleeps.enqueue(0).result(timeout=LONG_S) for _ in range(4)})

    assert (pids(), pids(process_jobs=3)) == (1, 2)


PROGRAM = """
import os, pathlib, time
from jqmaster import JQ

jq = JQ({url!r}, namespace={namespace!r}, max_retry=0)
{before}
@jq.job(process=True)
def stays(seconds):
    pathlib.Path("pid.tmp").write_text(str(os.getpid()))
    os.rename("pid.tmp", "pid")
    time.sleep(seconds)
    return 1

if __name__ == "__main__":
    jq.run()
"""


def write(folder: Path, jq: JQ, before: str = "") -> Any:
    (folder / "program.py").write_text(PROGRAM.format(url=jq.url, namespace=jq.namespace, before=before))
    return JQ(jq.url, namespace=jq.namespace, max_retry=0).task("stays")


@pytest.mark.parametrize("seconds", [0.5, 600])
def test_processes_end_with_a_worker_that_is_killed(jq: JQ, tmp_path: Path, seconds: float) -> None:
    task = write(tmp_path, jq)
    with Process("jqmaster.cli", "work", "program:jq", ready="is ready", folder=tmp_path) as worker:
        task.enqueue(seconds)
        until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        worker.signal(signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])
        assert "Traceback" not in worker.text  # whoever ends first has nobody to tell it to


def test_a_program_that_is_its_own_worker_has_processes(jq: JQ, tmp_path: Path) -> None:
    task = write(tmp_path, jq)
    with Process("program", ready="is ready", folder=tmp_path):
        assert task.enqueue(0).result(timeout=LONG_S) == 1


def test_a_signal_for_all_processes_ends_none_that_starts(jq: JQ, tmp_path: Path) -> None:
    task = write(tmp_path, jq, "time.sleep(0.2)")
    with Process(
        "jqmaster.cli", "work", "program:jq", "--stop-timeout", "60s", ready="is ready", folder=tmp_path
    ) as worker:
        handle = task.enqueue(0)
        until(lambda: children(worker.pid))
        for pid in (worker.pid, *children(worker.pid)):
            os.kill(pid, signal.SIGTERM)  # as a service manager does; the process has no handlers yet
        assert worker.ends() == 0
        assert handle.result(timeout=LONG_S) == 1


def test_a_program_that_fails_there_is_told(jq: JQ, tmp_path: Path) -> None:
    task = write(tmp_path, jq, 'assert "worker.process" not in " ".join(__import__("sys").orig_argv), "no licence"')
    with Process("jqmaster.cli", "work", "program:jq", ready="is ready", folder=tmp_path):
        with pytest.raises(JobError, match="no licence") as caught:
            task.enqueue(0).result(timeout=LONG_S)
        assert "program.py" in caught.value.error["traceback"]


def test_a_lifespan_that_fails_there_is_told(redis_url: str, namespace: str) -> None:
    with broken.using(redis_url, namespace):
        handles = [never_begins.enqueue() for _ in range(2)]
        broken.burst(raises=False)
        for document in (handle.document() for handle in handles):
            assert document["message"].endswith("no licence here")
            assert "fails_to_start" in document["error"]["traceback"]


@pytest.mark.parametrize("task", [where, by_another_name])
def test_a_process_asks_the_server_of_its_object(jq: JQ, task: Any) -> None:
    handle = task.enqueue()
    jq.burst()
    name, follower = handle.result(timeout=LONG_S)
    assert name == jq.handle(follower).result(timeout=LONG_S) == repr(jq)


@pytest.mark.parametrize("task", [where, where_in_thread])
def test_jobs_ask_the_server_that_their_worker_was_told(jq: JQ, task: Any) -> None:
    told = ("--url", jq.url, "--namespace", jq.namespace)
    elsewhere = {"JQ_URL": "redis://127.0.0.1:9", "JQ_NAMESPACE": "{other}"}
    with Process("jqmaster.cli", "work", "process_jobs:jobs", *told, ready="is ready", variables=elsewhere):
        name, follower = task.enqueue().result(timeout=LONG_S)
        assert name == jq.handle(follower).result(timeout=LONG_S) == repr(jq)
        assert jq.chain([here.job()], asks_dependencies.job()).result(timeout=LONG_S) == [repr(jq)]
