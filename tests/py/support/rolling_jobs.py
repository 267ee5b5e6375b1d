"""Jobs for rolling.py. Each attempt writes down where and when its function begins and ends, so that nobody has to
believe the queue's own books. Workers and the processes of their jobs import this module."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator

from jqmaster import JQ, JobStopped, current_job, progress

JOURNAL, WORKER = "ROLLING_JOURNAL", "ROLLING_WORKER"
"""The variable with the path of the file that is written to; and that with the worker's number."""
STEP_S = 0.1

jq = JQ(retry_base=0.1, retry_cap=0.5, timeout=10)


def note(what: str) -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    job = current_job.get()
    line = {"what": what, "job": job.id, "attempt": job.attempt, "pid": os.getpid(), "worker": os.environ[WORKER]}
    file = os.open(os.environ[JOURNAL], os.O_APPEND | os.O_WRONLY)
    os.write(file, json.dumps(line | {"at": time.monotonic()}).encode() + b"\n")
    os.close(file)


@contextlib.contextmanager
def noted(fails: bool) -> Iterator[None]:
    """Of one attempt: `begin`, and then `whole`, `cut` (its worker stops) or `raised`, as the first if `fails`."""
    note("begin")
    try:
        yield
        if fails and current_job.get().retry_count < 1:
            raise ValueError("as it was told")
    except (asyncio.CancelledError, JobStopped):
        note("cut")
        raise
    except BaseException:
        note("raised")
        raise
    note("whole")


@jq.job
async def coroutine(seconds: float, deaf: bool = False, fails: bool = False) -> None:
    """A deaf one swallows its cancellation and goes on."""
    with noted(fails):
        ends = time.monotonic() + seconds
        while (left_s := ends - time.monotonic()) > 0:
            with contextlib.suppress(*[asyncio.CancelledError] if deaf else []):
                await asyncio.sleep(left_s)


@jq.job
def thread(seconds: float, deaf: bool = False, fails: bool = False) -> None:
    """A deaf one never asks whether it should end."""
    with noted(fails):
        ends = time.monotonic() + seconds
        while (left_s := ends - time.monotonic()) > 0:
            time.sleep(left_s if deaf else min(STEP_S, left_s))
            if not deaf:
                progress(round(100 - 100 * left_s / seconds))


@jq.job(process=True)
def process(seconds: float, deaf: bool = False, fails: bool = False) -> None:
    thread(seconds, deaf, fails)


FORMS = {"coroutine": coroutine, "thread": thread, "process": process}
