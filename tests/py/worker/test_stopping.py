"""Workers that stop: nothing is begun that cannot end, nothing goes on that was given back, and the process ends."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from jqmaster import JQ, Handle
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.server import ServeOptions, Server
from parts import enqueue, until
from processes import MasterProcess, Process
from servers import RedisServer
from test_worker import SOON_S, working

PROGRAM = """
import asyncio, os, signal, threading, time
from jqmaster import JQ

jq = JQ(queue="all", max_retry=0)

def note(word):
    with open("notes", "a") as notes:
        notes.write(f"{word} {time.time()}\\n")

@jq.job
def thread(seconds: float) -> None:
    note("begins")
    time.sleep(seconds)
    note("ends")

@jq.job
async def swallows(seconds: float) -> None:
    note("begins")
    until = time.time() + seconds
    while time.time() < until:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass
    note("ends")

@jq.job
async def fails_when_cancelled(seconds: float) -> None:
    note("begins")
    try:
        await asyncio.sleep(seconds)
    finally:
        raise ConnectionError("closed meanwhile")

@jq.job
async def sleeps(seconds: float) -> None:
    note("begins")
    time.sleep(seconds)
    note("ends")

@jq.job
async def computes(seconds: float) -> None:
    note("begins")
    until = time.time() + seconds
    while time.time() < until:
        pass
    note("ends")

@jq.job(process=True)
def process(seconds: float) -> None:
    note("begins")
    time.sleep(seconds)
    note("ends")

@jq.job
async def leaves_a_task(what: str) -> None:
    if what == "no stdout":
        return os.close(1)
    if what == "blocked signals":
        signal.pthread_sigmask(signal.SIG_BLOCK, {15})
        return
    def end():
        if what == "stop":
            asyncio.get_running_loop().stop()
        raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}.get(what, ValueError)(1)
    async def later():
        end()
    asyncio.create_task(later())
    asyncio.get_running_loop().call_later(0.1, end)

@jq.job
def leaves_a_thread(seconds: float) -> None:
    threading.Thread(target=time.sleep, args=(seconds,), daemon=False).start()  # as a thread of a daemon is one

@jq.job
async def ok() -> int:
    return 1
"""


@pytest.fixture
def program(tmp_path: Path, redis_url: str, namespace: str) -> JQ:
    (tmp_path / "program.py").write_text(PROGRAM.replace("JQ(", f"JQ({redis_url!r}, namespace={namespace!r}, "))
    return JQ(redis_url, namespace=namespace, queue="all", max_retry=0)


@pytest.fixture
def master(redis_url: str, namespace: str) -> Iterator[MasterProcess]:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        yield master


def worker(folder: Path, *options: str, stop_timeout: str = "1s") -> Process:
    command = ("jqmaster.cli", "work", "program:jq", "--stop-timeout", stop_timeout, *options)
    return Process(*command, ready=" listens on " if "--push" in options else "is ready", folder=folder)


def notes(folder: Path) -> list[tuple[str, float]]:
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(word, float(at)) for word, at in (line.split() for line in lines)]


def until_begun(folder: Path, count: int = 1) -> None:
    deadline = time.monotonic() + SOON_S
    while sum(word == "begins" for word, _ in notes(folder)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_said(one: Process, words: str) -> None:
    deadline = time.monotonic() + SOON_S
    while words not in one.text:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def enqueued(jq: JQ, name: str, argument: object, **options: float) -> Handle[object]:
    return jq.task(name).options(**options).enqueue(argument)


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_what_a_report_brings_after_the_stop_is_given_back_unstarted(
    way: str, fresh_server: RedisServer, namespace: str
) -> None:
    begun, go_on = [], asyncio.Event()

    async def nap(argument: int) -> None:
        begun.append(argument)
        await go_on.wait()

    async with (
        Server(ServeOptions(redis_url=fresh_server.url, namespace=namespace, port=0)) as server,
        connect(fresh_server.url) as redis,
    ):
        own = Engine(redis, namespace)
        first, second = [await enqueue(own, "nap", number, max_retry=0) for number in range(2)]
        async with working(way, server, {"nap": nap}, concurrency=1) as one:
            await until(own, first, "running")
            await redis.client_pause(1500)
            go_on.set()
            await asyncio.sleep(0.3)  # the report is under way, with a wish for the next job
            one.stop.set()
            await asyncio.wait_for(one.task, SOON_S)
        await until(own, first, "done")
        assert begun == [0]
        document = await until(own, second, "queued")
        assert document["retry_count"] == 0


@pytest.mark.parametrize(
    ("name", "how"),
    [("thread", "redis"), ("thread", "http"), ("thread", "push"), ("swallows", "redis"), ("process", "redis")],
)
def test_a_function_that_outlasts_its_grace_never_runs_beside_its_next_attempt(
    name: str, how: str, program: JQ, master: MasterProcess, tmp_path: Path
) -> None:
    options = {"redis": (), "http": ("--url", master.url), "push": ("--url", master.url, "--push")}[how]
    with worker(tmp_path, *options) as first:
        handle = enqueued(program, name, 4.0)
        until_begun(tmp_path)
        first.signal()
        with worker(tmp_path, *options):
            assert first.ends(20) == 0
            ended = time.time()
            assert handle.result(timeout=SOON_S) is None
    [(_, _), (again, begun), (ends, _)] = notes(tmp_path)
    assert (again, ends) == ("begins", "ends") and begun >= ended
    assert handle.document()["retry_count"] == 0


@pytest.mark.parametrize("how", ["redis", "http", "push"])
def test_a_worker_that_stood_still_begins_nothing_whose_lease_is_over(
    how: str, fresh_server: RedisServer, tmp_path: Path
) -> None:
    jq = JQ(fresh_server.url, queue="all")
    (tmp_path / "program.py").write_text(PROGRAM.replace("JQ(", f"JQ({fresh_server.url!r}, "))
    with MasterProcess("--redis", fresh_server.url) as master:
        options = {"redis": (), "http": ("--url", master.url), "push": ("--url", master.url, "--push")}[how]
        with worker(tmp_path, *options, "--concurrency", "1") as one, redis.Redis.from_url(fresh_server.url) as own:
            enqueued(jq, "thread", 1.0)
            until_begun(tmp_path)
            job = enqueued(jq, "thread", 0.0, timeout=1.0, max_retry=30)
            own.client_pause(2000)  # its report is answered, with the job, when it does not look any more
            time.sleep(1.5)
            one.signal(signal.SIGSTOP)
            deadline = time.monotonic() + SOON_S
            while (document := job.document())["attempt"] < 1:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert document["status"] == "running"
            with worker(tmp_path):
                assert job.result(timeout=SOON_S) is None
            one.signal(signal.SIGCONT)
            assert jq.task("ok").enqueue().result(timeout=SOON_S) == 1
            until_said(one, "LOST, stopping it")
    assert [word for word, _ in notes(tmp_path)] == ["begins", "ends"] * 2


def test_a_redis_that_does_not_answer_at_first_takes_back_what_outlasts_its_grace(
    fresh_server: RedisServer, tmp_path: Path
) -> None:
    jq = JQ(fresh_server.url, queue="all")
    (tmp_path / "program.py").write_text(PROGRAM.replace("JQ(", f"JQ({fresh_server.url!r}, "))
    with worker(tmp_path, stop_timeout="5s") as one, redis.Redis.from_url(fresh_server.url) as own:
        handle = enqueued(jq, "thread", 600.0, timeout=600.0)
        until_begun(tmp_path)
        own.client_pause(4500)
        one.signal()
        assert one.ends(SOON_S) == 0
    assert handle.status() in ("scheduled", "queued") and handle.document()["retry_count"] == 0


@pytest.mark.parametrize("name", ["sleeps", "computes"])
def test_a_blocked_loop_does_not_keep_a_worker_from_stopping(name: str, program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path) as one:
        enqueued(program, name, 60.0)
        until_begun(tmp_path)
        one.signal()
        assert one.ends(20) == 0
        assert "leases of its jobs run out" in one.text


def test_a_job_that_fails_since_its_worker_stops_is_given_back(program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path) as one:
        handle = enqueued(program, "fails_when_cancelled", 60.0)
        until_begun(tmp_path)
        one.signal()
        assert one.ends(20) == 0
        assert "failed as its worker stopped: ConnectionError: closed meanwhile" in one.text
    assert handle.status() in ("scheduled", "queued") and handle.document()["retry_count"] == 0


@pytest.mark.parametrize("name", ["sleeps", "computes", "thread", "swallows"])
def test_a_second_signal_ends_a_worker_at_once(name: str, program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path, stop_timeout="60s") as one:
        enqueued(program, name, 60.0)
        until_begun(tmp_path)
        one.signal()
        time.sleep(0.5)
        one.signal(signal.SIGINT)
        assert one.ends(20) == 128 + signal.SIGINT


def test_a_thread_that_a_job_left_does_not_keep_a_worker_that_is_asked_to_stop(program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path, "--register") as one:
        enqueued(program, "leaves_a_thread", 60.0).result(timeout=SOON_S)
        [listed] = [document for document in program.operations.workers()[1] if document["pid"] == one.pid]
        program.operations.worker(listed["id"], request="stop")
        assert one.ends(20) == 0


def test_a_signal_when_the_worker_has_stopped_already_changes_nothing(program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path, "--register") as one:
        enqueued(program, "leaves_a_thread", 5.0).result(timeout=SOON_S)
        [listed] = [document for document in program.operations.workers()[1] if document["pid"] == one.pid]
        program.operations.worker(listed["id"], request="stop")
        until_said(one, "has stopped")
        time.sleep(0.5)  # its loop is closed; the interpreter waits for the thread
        one.signal()
        assert one.ends(20) == 0 and "Traceback" not in one.text


@pytest.mark.parametrize("what", ["exit", "interrupt", "stop", "error", "no stdout", "blocked signals"])
def test_what_a_job_leaves_behind_does_not_end_its_worker(what: str, program: JQ, tmp_path: Path) -> None:
    with worker(tmp_path) as one:
        enqueued(program, "leaves_a_task", what).result(timeout=SOON_S)
        time.sleep(0.3)
        assert program.task("ok").enqueue().result(timeout=SOON_S) == 1
        one.signal()
        assert one.ends(20) == 0


MANY = """
from jqmaster import JQ

jq = JQ()
for number in range(101):
    def job() -> None: ...
    job.__name__ = f"job_{number}"
    jq.job(job)
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "at most 100 queues, got 101"),
        (("--queues", "*", "--concurrency", "1001"), "concurrency: expected 1 to 1000, got 1001"),
    ],
)
def test_what_a_worker_could_never_do_is_said_at_its_start(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MANY)
    with Process("jqmaster.cli", "work", "program:jq", *options, folder=tmp_path) as one:
        assert one.ends() == 2 and said in " ".join(one.text.split())


def test_a_thread_that_outlasts_its_grace_stands_for_its_limit_until_it_is_gone(program: JQ, tmp_path: Path) -> None:
    program.operations.constrain("one", {"name": "thread"}, concurrency=1)
    with worker(tmp_path) as first:
        handles = [enqueued(program, "thread", 60.0), enqueued(program, "thread", 0.0)]
        until_begun(tmp_path)
        with worker(tmp_path, stop_timeout="60s"):
            first.signal()
            assert first.ends(20) == 0
            ended = time.time()
            until_begun(tmp_path, 2)
            assert notes(tmp_path)[1][1] > ended
    assert [handle.document()["retry_count"] for handle in handles] == [0, 0]
