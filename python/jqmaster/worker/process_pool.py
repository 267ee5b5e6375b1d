"""Processes for functions that keep a processor busy (`@jq.job(process=True)`)."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from jqmaster.engine.replies import Job
from jqmaster.worker.notes import current_job


class ProcessPool:
    """At most `most` processes, and no more than there are processors; made when they are needed.

    They are started anew (`spawn`), so they share nothing with the worker: the function is found by its
    module and name. An attempt that is cancelled goes on in its process until it returns.
    """

    def __init__(self, most: int) -> None:
        self._most = max(1, min(most, os.cpu_count() or 1))
        self._pool: ProcessPoolExecutor | None = None

    async def run(
        self, function: Callable[..., Any], job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `function` there. What it raises is raised here. Raises RuntimeError when its process dies."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._most, context, _begin)
        pool = self._pool
        where = function.__module__, function.__qualname__
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool, _call, where, job, args, dict(kwargs))
        except BrokenProcessPool as error:
            # One that was killed takes all of the pool with it.
            if self._pool is pool:
                self._pool = None
                pool.shutdown(wait=False)
            raise RuntimeError("a process that ran jobs died, such as for want of memory") from error

    def stop(self) -> None:
        """End the processes, whatever they do."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _begin() -> None:
    # Ctrl-C at the terminal reaches all processes; the worker ends these after their jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(where: tuple[str, str], job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found: Any = importlib.import_module(where[0])
    for part in where[1].split("."):
        found = getattr(found, part)
    function = getattr(found, "function", None) or found
    current_job.set(job)
    try:
        return function(*args, **kwargs)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            # One that cannot travel would break the whole pool.
            text = "".join(traceback.format_exception(error))
            raise RuntimeError(f"{type(error).__name__}: {error}\n{text}") from None
        raise
