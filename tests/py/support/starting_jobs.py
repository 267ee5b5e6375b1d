"""Jobs that start processes, and what goes wrong around the process of a job. Each process imports this module."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from jqmaster import JQ, progress

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
