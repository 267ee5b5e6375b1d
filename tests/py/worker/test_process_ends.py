"""What goes wrong around the process of a job is that job's failure, and says what it was."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from jqmaster import JQ, JobError, MessagePack
from jqmaster.testing import working
from processes import Process
from starting_jobs import (
    asks_dependencies,
    broken,
    doubled,
    endless,
    gives,
    here,
    jobs,
    never_begins,
    takes,
    unending,
    where,
    where_by_another_name,
    where_in_thread,
    where_on_the_loop,
    wrapped,
)
from topologies import until

LONG_S = 60


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("lock", "the result cannot leave its process: cannot pickle '_thread.lock' object"),
        ("unreadable", "the result cannot be read outside of its process: SystemExit: not here"),
        ("generator", "the function returned a generator: jobs cannot be generators"),
    ],
)
def test_a_result_that_cannot_leave_its_process(jq: JQ, how: str, message: str) -> None:
    handle = gives.options(max_retry=3).enqueue(how)
    jq.burst(raises=False)
    document = handle.document()
    assert document["message"].startswith(message) and document["attempt"] == 1


def test_an_argument_that_cannot_be_sent_to_a_process(jq: JQ, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq, "serializer", MessagePack(ext_hook=lambda code, data: lambda: code))
    handle = jq.enqueue("takes", [msgpack.ExtType(5, b"")], queue="starting")
    other = takes.enqueue(1)
    jq.burst(raises=False)
    assert handle.document()["message"].startswith("the argument cannot be sent to a process: ")
    assert other.result(timeout=LONG_S) == "int"


def test_what_only_the_program_knows_leaves_its_process(jq: JQ) -> None:
    follows, released, after = [gives.enqueue(how) for how in ("follow-up", "released", "after")]
    with working(jq):
        assert follows.result(timeout=LONG_S) == 1
        until(lambda: released.document()["attempt"] > 1)
        assert released.document()["status"] != "error"
        released.cancel(force=True)
        assert after.result(timeout=LONG_S) == "resumed"


def test_log_lines_arrive_whatever_they_hold(jq: JQ, caplog: pytest.LogCaptureFixture) -> None:
    handle = gives.enqueue("logs")
    with working(jq):
        handle.result(timeout=LONG_S)
    said = [record for record in caplog.records if record.name == "starting_jobs"]
    assert [record.getMessage().split("\n")[0] for record in said] == [
        "with more",
        "it went wrong",
    ]
    more: Any = said[0]
    assert (more.map, more.half) == ({"a": 1}, "\\udc80") and "lock" in more.lock
    assert "ValueError: <unlocked" in said[1].getMessage()


def test_a_signal_for_all_processes_ends_none_that_starts(jq: JQ) -> None:
    with working(jq, concurrency=1):
        handle = gives.enqueue("pid")
        before = {one.pid for one in multiprocessing.active_children()}
        until(lambda: {one.pid for one in multiprocessing.active_children()} - before)
        [pid] = {one.pid for one in multiprocessing.active_children()} - before
        assert pid is not None
        while handle.status() != "done":
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        assert (handle.result(timeout=LONG_S), handle.document()["attempt"]) == (pid, 1)


def children(pid: int) -> Iterator[str]:
    """The command lines of a process's children."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            with contextlib.suppress(OSError):
                yield Path(f"/proc/{child}/cmdline").read_text()


def test_a_signal_for_all_processes_does_not_end_the_first_that_starts(
    redis_url: str, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        f"""
import time
from jqmaster import JQ
time.sleep(0.2)
jq = JQ({redis_url!r}, namespace={namespace!r}, max_retry=0)
@jq.job(process=True)
def one() -> int: return 1
"""
    )
    with Process(
        "jqmaster.cli", "work", "program:jq", "--stop-timeout", "60s", ready="is ready", folder=tmp_path
    ) as one:
        handle = JQ(redis_url, namespace=namespace, max_retry=0).enqueue("one")
        until(lambda: any("spawn_main" in command for command in children(one.pid)))
        os.killpg(one.pid, signal.SIGTERM)  # as a service manager does; the process has no handlers yet
        assert one.ends() == 0
        assert handle.result(timeout=LONG_S) == 1


def test_a_program_that_fails_in_a_process_is_told(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"""
from jqmaster import JQ
jq = JQ({redis_url!r}, namespace={namespace!r}, max_retry=0)
@jq.job(process=True)
def never(): ...
assert __name__ == "__main__", "not in a process"
jq.run()
"""
    )
    with Process("program", ready="is ready", folder=tmp_path) as worker:
        handle = JQ(redis_url, namespace=namespace, max_retry=0).enqueue("never")
        with pytest.raises(JobError, match="its process died while it started, its standard error says why"):
            handle.result(timeout=LONG_S)
        assert "AssertionError: not in a process" in worker.text


def test_a_hook_that_fails_in_a_process_is_told(redis_url: str, namespace: str) -> None:
    with broken.using(redis_url, namespace):
        handles = [never_begins.enqueue() for _ in range(2)]
        broken.burst(raises=False)
        for document in (handle.document() for handle in handles):
            assert document["message"] == "its process could not start: SystemExit: no licence here"
            assert document["group"] == "SystemExit" and "fails_to_start" in document["error"]["traceback"]


def test_a_module_that_fails_in_a_process_is_told(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        """
import multiprocessing
from jqmaster import JQ
assert multiprocessing.parent_process() is None, "not in a process"
jq = JQ(max_retry=0)
@jq.job(process=True)
def never(): ...
"""
    )
    where = ("--url", redis_url, "--namespace", namespace)
    with Process("jqmaster.cli", "work", "program:jq", *where, ready="is ready", folder=tmp_path):
        handle = JQ(redis_url, namespace=namespace, max_retry=0).enqueue("never")
        with pytest.raises(JobError, match="its process could not start: AssertionError: not in a process") as caught:
            handle.result(timeout=LONG_S)
        assert "program.py" in caught.value.error["traceback"]


@pytest.mark.parametrize("task", [where, where_by_another_name])
def test_a_process_asks_the_server_of_its_object(jq: JQ, task: Any) -> None:
    handle = task.enqueue()
    jq.burst()
    name, follower = handle.result(timeout=LONG_S)
    assert name == repr(jq)
    assert jq.handle(follower).result(timeout=LONG_S) == repr(jq)
    flow = jq.chord([here.job()], asks_dependencies.job())
    jq.burst()
    assert flow.result(timeout=LONG_S) == [repr(jq)]


@pytest.mark.parametrize("task", [where, where_in_thread, where_on_the_loop])
def test_jobs_ask_the_server_that_their_worker_was_told(jq: JQ, task: Any) -> None:
    given = ("--url", jq.url, "--namespace", jq.namespace)
    elsewhere = {"JQ_URL": "redis://127.0.0.1:9", "JQ_NAMESPACE": "{other}"}
    with Process("jqmaster.cli", "work", "starting_jobs:jobs", *given, ready="is ready", variables=elsewhere):
        name, follower = task.enqueue().result(timeout=LONG_S)
        assert name == repr(jq)
        assert jq.handle(follower).result(timeout=LONG_S) == repr(jq)
        assert jq.chord([here.job()], asks_dependencies.job()).result(timeout=LONG_S) == [repr(jq)]


def test_a_worker_of_another_server_leaves_the_object_as_it_was(redis_url: str, namespace: str) -> None:
    jq = JQ("redis://127.0.0.1:9", namespace="{other}")
    before = jq.target, jq.link

    @jq.job
    def name() -> str:
        return repr(jq)

    with working(jq, redis_url=redis_url, namespace=namespace):
        handle = JQ(redis_url, namespace=namespace).enqueue("name")
        assert handle.result(timeout=LONG_S) == f"<JQ {redis_url} {namespace}>"
    assert (jq.target, jq.link) == before


def test_coroutines_behind_plain_functions_are_awaited(jq: JQ) -> None:
    assert not wrapped.is_async
    handles = [wrapped.enqueue(4), doubled.enqueue(4)]
    generators = [endless.enqueue(4), unending.enqueue()]
    jq.burst(raises=False)
    assert [handle.result(timeout=LONG_S) for handle in handles] == [8, 8]
    kinds = ["a generator", "an async generator"]
    for handle, kind in zip(generators, kinds, strict=True):
        assert handle.document()["message"] == f"the function returned {kind}: jobs cannot be generators, return a list"
    with jq.immediate():
        assert wrapped.enqueue(4).result() == 8
