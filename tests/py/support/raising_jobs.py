"""Jobs that raise anything, as coroutines, in threads and in processes, for test_raising.py."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import os
import threading
from collections.abc import Callable
from typing import Any

from jqmaster import JQ, JobFailed, JobReleased, JobStopped

jobs = JQ(max_retry=1, retry_base=0, timeout=60)


class Own(BaseException):
    """Neither an Exception, nor to be made with one argument."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class Mute(Exception):
    def __str__(self) -> str:
        raise Own("a", "b")

    __repr__ = __str__


class Odd(Exception):
    def __str__(self) -> Any:  # type: ignore[override]
        return 5


class Classless(Exception):
    @property  # isinstance() asks for it
    def __class__(self) -> Any:
        raise SystemExit(5)


class Secretive(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(6)


class Nameless(type):
    def __instancecheck__(cls, one: object) -> bool:
        raise SystemExit(7)

    @property
    def __name__(cls) -> Any:  # type: ignore[override]
        raise SystemExit(7)


class OfNameless(Exception, metaclass=Nameless): ...


class Undecided(JobFailed):
    @property
    def retry(self) -> Any:  # type: ignore[override]
        raise SystemExit(8)

    @retry.setter
    def retry(self, value: bool) -> None: ...


class Endless(JobReleased):
    @property
    def delay(self) -> Any:  # type: ignore[override]
        raise SystemExit(9)

    @delay.setter
    def delay(self, value: float) -> None: ...


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


ODD: dict[str, Callable[[], BaseException]] = {
    "classless": Classless,
    "secretive": Secretive,
    "nameless": OfNameless,
    "undecided": lambda: Undecided("m"),
    "endless": lambda: Endless("m"),
    "frozen": lambda: Frozen(503),
}


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
    if how in ODD:
        raise ODD[how]()
    match how:
        case "exit":
            raise SystemExit("usage: …")
        case "exit code":
            raise SystemExit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "stop iteration":
            next(iter(()))
        case "stop async iteration":
            raise StopAsyncIteration("no more")
        case "generator exit":
            raise GeneratorExit
        case "cancelled":
            raise asyncio.CancelledError("by itself")
        case "cancelled future":
            future: concurrent.futures.Future[None] = concurrent.futures.Future()
            future.cancel()
            future.result()
        case "timeout":
            raise TimeoutError("no answer")
        case "stopped":
            raise JobStopped("it says so itself")
        case "own":
            raise Own("a", "b")
        case "mute":
            raise Mute
        case "odd":
            raise Odd
        case "surrogate":
            raise OSError(os.fsdecode(b"caf\xe9"))
        case "huge":
            raise ValueError("x" * 5_000_000)
        case "recursion":
            return raise_it(how)
        case "memory":
            raise MemoryError
        case "group":
            raise BaseExceptionGroup("several", [ValueError("a"), SystemExit(1)])
        case "chain":
            raise chained()
        case "cause":
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("bad row") from error
        case "lock":
            raise ValueError(threading.Lock())
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


RULES: dict[str, Any] = {"max_retry": 3, "retry_base": 0, "retry_on": (Own, KeyError), "give_up_on": (SystemExit,)}


def by_rules(how: str) -> None:
    if how == "retried":
        raise Own("a", "b")
    raise {"given up": SystemExit(1), "not listed": GeneratorExit()}[how]


async def ruled_coroutine(how: str) -> None:
    by_rules(how)


ruled: dict[str, Any] = {
    "coroutine": jobs.job(name="ruled_coroutine", **RULES)(ruled_coroutine),
    "thread": jobs.job(name="ruled_thread", **RULES)(by_rules),
    # Not under the function's name: its process has to look for it.
    "process": jobs.job(name="ruled_process", process=True, **RULES)(by_rules),
}
