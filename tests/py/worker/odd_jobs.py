"""Jobs that do odd things to the process that they run in, for test_odd_jobs.py."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from jqmaster import JQ

jobs = JQ(max_retry=0, timeout=60, queue="odd")


class Full(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("no space left on device")


class Odd(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        raise ValueError("not this one")


def fails() -> None:
    raise ZeroDivisionError("in a callback")


async def forks_and_waits() -> None:
    if os.fork() == 0:
        for _ in range(500):
            await asyncio.sleep(0)
        os.kill(os.getppid(), signal.SIGKILL)  # the child comes so far where its loop goes on


@jobs.job
async def odd(how: str) -> str:
    loop = asyncio.get_running_loop()
    match how:
        case "cancels all tasks":
            for task in asyncio.all_tasks():
                task.cancel()
        case "cancels all tasks, twice":
            for _ in range(2):
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()
                await asyncio.sleep(0.01)
        case "takes signals":
            loop.add_signal_handler(signal.SIGTERM, print)
        case "drops signals":
            loop.add_signal_handler(signal.SIGTERM, print)
            loop.remove_signal_handler(signal.SIGTERM)
        case "ignores signals":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "closes streams":
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.close()
        case "drops streams":
            sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]
        case "logs nowhere":
            logging.getLogger().addHandler(Full())
        case "filters":
            logging.getLogger().handlers[0].addFilter(Odd())
        case "fails later where nobody can be told":
            logging.getLogger().addHandler(Full())
            loop.call_later(0.05, fails)
        case "forks and waits":
            await forks_and_waits()
        case "leaves no threads":
            threading.stack_size(1 << 46)
        case "leaves threads":
            threading.stack_size(0)
    return how


@jobs.job
async def coroutine() -> int:
    return 1


@jobs.job
def thread() -> int:
    return 1


@jobs.job
def writes(path: str) -> None:
    Path(path).touch()


@jobs.job
async def waits_for_a_thread(path: str) -> None:
    await asyncio.to_thread(Path(path).touch)
    await asyncio.to_thread(time.sleep, 600)


@jobs.job
def logs_where_nobody_reads(path: str) -> None:
    os.dup2(os.pipe()[1], 2)
    Path(path).touch()
    logging.getLogger().error("x" * 1_000_000)
