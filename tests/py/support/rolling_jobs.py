"""Jobs for rolling.py. Each attempt writes down where and when its function begins and ends, so that nobody has to
believe the queue's own books. Workers and the processes of their jobs import this module."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any

from jqmaster import JQ, FollowUp, JobStopped, current_job, progress

JOURNAL, WORKER = "ROLLING_JOURNAL", "ROLLING_WORKER"
"""The variable with the path of the file that is written to; and that with the worker's number."""
STEP_S = 0.1

jq = JQ(retry_base=0.1, retry_cap=0.5, timeout=10)


def note(what: str, number: int) -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    job = current_job.get()
    where = {"pid": os.getpid(), "worker": int(os.environ[WORKER])}
    line = {"what": what, "number": number, "job": job.id, "attempt": job.attempt, **where}
    file = os.open(os.environ[JOURNAL], os.O_APPEND | os.O_WRONLY)
    os.write(file, json.dumps(line | {"at": time.monotonic()}).encode() + b"\n")
    os.close(file)


@contextlib.contextmanager
def noted(number: int, fails: int) -> Iterator[None]:
    """Of one attempt: `begin`, and then `whole`, `cut` (its worker stops) or `raised`. The first `fails` are to."""
    note("begin", number)
    try:
        yield
        if current_job.get().retry_count < fails:
            raise ValueError("as it was told")
    except (asyncio.CancelledError, JobStopped):
        note("cut", number)
        raise
    except BaseException:
        note("raised", number)
        raise
    note("whole", number)


def ending(number: int, follows: bool) -> Any:
    return FollowUp(number, [follower.job(number)]) if follows else number


@jq.job(queue="shared-coroutine")
async def follower(number: int) -> int:
    with noted(-number, 0):
        await asyncio.sleep(STEP_S)
    return number


@jq.job
async def coroutine(
    number: int, seconds: float, *, customer: str = "", deaf: bool = False, fails: int = 0, follows: bool = False
) -> Any:
    """A deaf one swallows its cancellation and goes on."""
    with noted(number, fails):
        ends = time.monotonic() + seconds
        while (left_s := ends - time.monotonic()) > 0:
            with contextlib.suppress(*[asyncio.CancelledError] if deaf else []):
                await asyncio.sleep(left_s)
    return ending(number, follows)


def work(number: int, seconds: float, deaf: bool, fails: int) -> None:
    """A deaf one never asks whether it should end."""
    with noted(number, fails):
        ends = time.monotonic() + seconds
        while (left_s := ends - time.monotonic()) > 0:
            time.sleep(left_s if deaf else min(STEP_S, left_s))
            if not deaf:
                progress(round(100 - 100 * left_s / seconds))


@jq.job
def thread(
    number: int, seconds: float, *, customer: str = "", deaf: bool = False, fails: int = 0, follows: bool = False
) -> Any:
    work(number, seconds, deaf, fails)
    return ending(number, follows)


@jq.job(process=True)
def process(
    number: int, seconds: float, *, customer: str = "", deaf: bool = False, fails: int = 0, follows: bool = False
) -> Any:
    work(number, seconds, deaf, fails)
    return ending(number, follows)


FORMS = {"coroutine": coroutine, "thread": thread, "process": process}
