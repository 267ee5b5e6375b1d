"""Jobs in processes of their own, for test_processes.py. Each process imports this module: it needs little."""

import asyncio
import dataclasses
import datetime as dt
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path
from typing import Any

from jqmaster import JQ, JobFailed, JobStopped, MessagePack, ResumeAfter, checkpoint, current_job, progress
from typed_values import ID, Customer, Express, Order

jobs = JQ(serializer=MessagePack(default=sorted))
log = logging.getLogger("process_jobs.there")


@jobs.lifespan
async def lifespan() -> AsyncIterator[dict[str, int]]:
    yield {"pid": os.getpid()}


@jobs.job(process=True)
def where_it_runs(number: int) -> list[Any]:
    return [os.getpid(), number, current_job.get().name, jobs.state["pid"]]


class Awkward(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


@jobs.job(process=True, max_retry=0)
def fails(how: str) -> Any:
    match how:
        case "awkward":
            raise Awkward("a", "b")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exit":
            os._exit(3)
        case "unfit":
            return threading.Lock()
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


@jobs.job(max_runtime=1, max_retry=0)
async def hangs_here(path: str) -> None:
    try:
        await asyncio.sleep(600)
    finally:
        Path(path).write_text("cancelled")  # noqa: ASYNC240


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


stuck = JQ()


@stuck.shutdown
def never_ends() -> None:
    if multiprocessing.parent_process() is not None:
        time.sleep(600)


@stuck.job(process=True)
def passes() -> None: ...


@jobs.job(process=True, max_retry=0)
def waits_for_another(url: str, namespace: str) -> int:
    with jobs.using(url, namespace):
        result: int = jobs.enqueue("other").result()
        return result


typed = JQ(max_retry=0)


@dataclasses.dataclass
class Whole:
    order: Order
    customer: Customer
    days: frozenset[dt.date]


@typed.job(process=True)
def whole(order: Order, customer: Customer, days: set[dt.date]) -> Whole:
    assert isinstance(order, Order) and isinstance(customer, Customer)
    return Whole(order, customer, frozenset(days))


@typed.job(process=True)
def bad() -> Order:
    return Express(ID, Decimal(1))
