"""Jobs that start processes, and what goes wrong around the process of a job. Each process imports this module."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

from jqmaster import JQ, FollowUp, JobReleased, ResumeAfter, progress

jobs = JQ(max_retry=0, timeout=60)
log = logging.getLogger("starting_jobs")


def square(number: int) -> int:
    return number * number


def start_it(how: str) -> Any:
    context = multiprocessing.get_context("spawn" if how.startswith("spawned ") else "fork")
    match how.removeprefix("spawned "):
        case "process":
            child: Any = context.Process(target=time.sleep, args=(600,))
            child.start()
            time.sleep(0.3)
            child.terminate()
            child.join(60)
            return child.exitcode
        case "process that ends":
            child = context.Process(target=square, args=(2,))
            child.start()
            child.join(60)
            return child.exitcode
        case "pool":
            with context.Pool(2) as pool:
                return pool.map(square, range(4))
        case "executor":
            with ProcessPoolExecutor(2, mp_context=context) as executor:
                return list(executor.map(square, range(4)))
        case "program":
            program = subprocess.Popen(["sleep", "600"])
            program.terminate()
            return program.wait(60)
        case "handler":
            code = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print(1, flush=True); "
            program = subprocess.Popen([sys.executable, "-c", code + "time.sleep(600)"], stdout=subprocess.PIPE)
            assert program.stdout is not None
            program.stdout.read(1)
            program.terminate()
            return program.wait(60)
    child_pid = os.fork()
    if child_pid:
        return os.waitstatus_to_exitcode(os.waitpid(child_pid, 0)[1])
    log.warning("logged in a child")
    progress(1, "said in a child")
    if how == "child raises":
        raise ValueError("in the child")
    if how == "child exits":
        sys.exit(5)
    return "a child came back"


@jobs.job(queue="starting")
async def coroutine(how: str) -> Any:
    return start_it(how)


@jobs.job(queue="starting")
def thread(how: str) -> Any:
    return start_it(how)


@jobs.job(queue="starting", process=True)
def process(how: str) -> Any:
    return start_it(how)


@jobs.job(queue="starting", process=True, timeout=2)
def leaves(how: str, path: str) -> int:
    """Starts a program that runs on, and says its number."""
    child = subprocess.Popen(["sleep", "600"])
    if how == "ends with a thread":
        threading.Thread(target=time.sleep, args=(600,)).start()
    Path(path).write_text(f"{os.getpid()} {child.pid}\n")
    if how == "dies":
        os.kill(os.getpid(), 9)
    time.sleep(600 if how == "runs" else 0)
    return os.getpid()


@jobs.job(queue="starting", process=True)
def where() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


def anywhere() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


where_by_another_name = jobs.job(name="by another name", queue="starting", process=True)(anywhere)


@jobs.job(queue="starting")
def where_in_thread() -> list[Any]:
    return [repr(jobs), here.enqueue().id]


@jobs.job(queue="starting")
async def where_on_the_loop() -> list[Any]:
    return [repr(jobs), (await here.aenqueue()).id]


@jobs.job(queue="starting")
def here() -> str:
    return repr(jobs)


@jobs.job(queue="starting", process=True)
def asks_dependencies() -> list[Any]:
    return list(jobs.dependency_results())


class Unreadable:
    """Can be pickled, and read by nobody."""

    def __reduce__(self) -> Any:
        return read_badly, ()


def read_badly() -> None:
    raise SystemExit("not here")


class Busy(JobReleased):
    def __init__(self) -> None:
        super().__init__("busy", delay=0)


class After(ResumeAfter):
    def __init__(self) -> None:
        super().__init__([jobs.task("here", queue="starting").job()], checkpoint="again")


@jobs.job(queue="starting", process=True)
def gives(how: str) -> Any:
    match how:
        case "lock":
            return threading.Lock()
        case "unreadable":
            return Unreadable()
        case "generator":
            return (number for number in range(3))
        case "follow-up":
            return FollowUp(1, [jobs.task("here", queue="starting").job()])
        case "released":
            raise Busy
        case "after":
            raise After
        case "again":
            return "resumed"
        case "logs":
            log.warning("with more", extra={"lock": threading.Lock(), "map": {"a": 1}, "half": "\udc80"})
            try:
                raise ValueError(threading.Lock())
            except ValueError:
                log.exception("it went wrong")
    return os.getpid()


@jobs.job(queue="starting", process=True)
def takes(argument: Any) -> str:
    return type(argument).__name__


def loudly(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


async def double(number: int) -> int:
    return 2 * number


async def count() -> Any:
    yield 1


def numbers(number: int) -> Any:
    yield number


wrapped = jobs.job(name="wrapped", queue="starting")(loudly(double))
doubled = jobs.job(name="doubled", queue="starting", process=True)(loudly(double))
double = doubled  # type: ignore[assignment]  # where its process finds it
endless = jobs.job(name="endless", queue="starting")(loudly(numbers))
unending = jobs.job(name="unending", queue="starting")(lambda: count())

broken = JQ(max_retry=0)


@broken.startup
def fails_to_start() -> None:
    if multiprocessing.parent_process() is not None:
        raise SystemExit("no licence here")


@broken.job(process=True)
def never_begins() -> None: ...
