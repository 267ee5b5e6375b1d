"""Jobs in processes of their own, for test_processes.py. Each process imports this module: it needs little."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextvars import copy_context
from pathlib import Path
from typing import Any

from jqmaster import (
    JQ,
    FollowUp,
    JobFailed,
    JobReleased,
    JobStopped,
    ResumeAfter,
    checkpoint,
    current_job,
    progress,
)

jobs = JQ()
log = logging.getLogger("process_jobs.there")


@jobs.lifespan
async def lifespan() -> AsyncIterator[dict[str, int]]:
    yield {"pid": os.getpid()}


@jobs.job(process=True)
def where_it_runs(number: int) -> list[Any]:
    return [os.getpid(), number, current_job.get().name, jobs.state["pid"]]


@jobs.job(process=True, max_retry=0)
def fails(how: str) -> Any:
    match how:
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "busy":
            raise JobFailed("429", retry_in=500)
    raise ValueError(how)


@jobs.job(process=True, max_retry=0)
def dies_before_its_child() -> None:
    if os.fork() == 0:
        time.sleep(90)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def _talk() -> None:
    while True:
        time.sleep(0.02)
        progress(99)


@jobs.job(process=True)
def leaves_a_thread() -> int:
    threading.Thread(target=copy_context().run, args=(_talk,), daemon=True).start()
    return os.getpid()


@jobs.job(process=True)
def sleeps(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@jobs.job(process=True, max_runtime=1, max_retry=0)
def hangs() -> None:
    time.sleep(600)


@jobs.job(process=True, max_retry=0)
def fans_out(parts: Iterable[int] = (), *, done: bool = False) -> list[int]:
    if not done:
        first = where_it_runs.job(1)
        after = where_it_runs.options(depends=[first]).job(2)
        # A set, which only the object's serializer can pack.
        raise ResumeAfter([first, after], checkpoint={"parts": {3, 4}, "done": True})
    return [*parts, len(current_job.get().depends or ()), current_job.get().attempt]


@jobs.job(process=True, max_retry=1, retry_base=0)
def tells(number: int, seen: Iterable[int] = ()) -> list[int]:
    progress(number, "on the way")
    log.warning("number %d", number)
    if number < 10:
        checkpoint({"number": 10, "seen": {number}})  # a set, which only the object's serializer can pack
        raise ValueError("from there on")
    return [*seen, number]


@jobs.job(process=True, timeout=1)
def listens(how: str, path: str) -> None:
    Path(path).write_text("started")
    while how == "asks" and not current_job.get().cancelled:
        time.sleep(0.02)
    try:
        while how == "says":
            progress(1)
            time.sleep(0.02)
        if how == "waits":
            time.sleep(600)
        Path(path).write_text(str(current_job.get().cancelled))
    except JobStopped as stopped:
        Path(path).write_text(str(stopped))
        raise


@jobs.job(process=True)
def gives(how: str) -> Any:
    match how:
        case "follow-up":
            return FollowUp(1, [jobs.task("here").job()])
        case "released":
            raise Busy


class Busy(JobReleased):
    def __init__(self) -> None:
        super().__init__("busy", delay=0)


@jobs.job
def here() -> str:
    return repr(jobs)


@jobs.job(process=True)
def where() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


@jobs.job
def where_in_thread() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


def anywhere() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


by_another_name = jobs.job(name="by another name", process=True)(anywhere)


@jobs.job(process=True)
def asks_dependencies() -> list[Any]:
    return list(jobs.dependency_results())


IS_HERE = "worker.process" in " ".join(sys.orig_argv)

broken = JQ(max_retry=0)


@broken.lifespan
async def fails_to_start() -> AsyncIterator[None]:
    if IS_HERE:
        raise SystemExit("no licence here")
    yield


@broken.job(process=True)
def never_begins() -> None: ...
