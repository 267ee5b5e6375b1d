"""Jobs that raise anything, as coroutines, in threads and in processes, for test_raising.py."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

from jqmaster import JQ, JobFailed, JobStopped

jobs = JQ(max_retry=1, retry_base=0, timeout=60)


class Own(BaseException):
    """Neither an Exception, nor to be made with one argument."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class Mute(Exception):
    def __str__(self) -> str:
        raise Own("a", "b")

    __repr__ = __str__


class Forgot(JobFailed):
    def __init__(self) -> None: ...


def chained() -> Exception:
    error: Exception = ValueError("the first")
    for number in range(3000):
        later = ValueError(f"number {number}")
        later.__cause__ = error
        error = later
    return error


def raise_it(how: str) -> Any:
    match how:
        case "exit":
            raise SystemExit("usage: …")
        case "interrupt":
            raise KeyboardInterrupt
        case "stop iteration":
            next(iter(()))
        case "generator exit":
            raise GeneratorExit
        case "cancelled":
            raise asyncio.CancelledError("by itself")
        case "timeout":
            raise TimeoutError("no answer")
        case "stopped":
            raise JobStopped("it says so itself")
        case "own":
            raise Own("a", "b")
        case "mute":
            raise Mute
        case "surrogate":
            raise OSError(os.fsdecode(b"caf\xe9"))
        case "huge":
            raise ValueError("x" * 5_000_000)
        case "recursion":
            return raise_it(how)
        case "group":
            raise BaseExceptionGroup("several", [ValueError("a"), SystemExit(1)])
        case "chain":
            raise chained()
        case "cause":
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("bad row") from error
        case "forgot":
            raise Forgot
        case "failed":
            raise JobFailed("\udc80" * 9, group="\udc80\n" * 300, error=["\udc80"])
        case "failed huge":
            raise JobFailed("huge", error="x" * 20_000_000)
        case "failed lock":
            raise JobFailed("lock", error=threading.Lock(), group="locks")
    raise AssertionError(how)


async def in_coroutine(how: str) -> Any:
    await asyncio.sleep(0)
    if how == "cancelled":  # a task of its own
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task
    return raise_it(how)


@jobs.job(name="coroutine")
async def coroutine(how: str) -> Any:
    return await in_coroutine(how)


@jobs.job(name="thread")
def thread(how: str) -> Any:
    return raise_it(how)


@jobs.job(name="process", process=True)
def process(how: str) -> Any:
    return raise_it(how)


@jobs.job
def neighbour(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "well"
