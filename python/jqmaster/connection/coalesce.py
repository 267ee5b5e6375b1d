"""Enqueues of many requests in one script call.

A call to Redis costs the master several times what handling one more job inside it does. So while one call
is under way, whatever arrives waits and goes with the next: an idle master adds no delay, a busy one gets
cheaper.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Protocol

from jqmaster.errors import JQError

# A batch keeps Redis busy for as long as it takes, so it is small in jobs and in bytes.
MAX_JOBS = 100
MAX_BYTES = 1 << 20
_REFUSALS = frozenset(("INVALID", "FULL", "CONFLICT", "NOTFOUND"))


class Calls(Protocol):
    """Calls the scripts of one namespace."""

    async def call(self, script: str, /, *args: Any) -> Any:
        """Run `script` and return its reply as Redis gave it (bytes, integers, lists).

        Raises `jqmaster.errors.JQError`, also when Redis cannot be asked (`Unavailable`).
        """


class Coalescer:
    """Merges single enqueues into batches of one script call each."""

    def __init__(self, engine: Calls) -> None:
        self._engine = engine
        self._queue: deque[tuple[bytes, bytes, asyncio.Future[list[Any]]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def enqueue(self, spec: bytes, argument: bytes) -> list[Any]:
        """Enqueue one job (packed spec, raw argument); returns `[id, created]`.

        Raises what a call of its own would raise: a job that is refused does not touch its neighbours.
        """
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._queue.append((spec, argument, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._queue:
                await self._send(self._take())
        finally:
            self._task = None
            # Only when this task was cancelled (the loop is closing) is anything left.
            while self._queue:
                self._queue.popleft()[2].cancel()

    def _take(self) -> list[tuple[bytes, bytes, asyncio.Future[list[Any]]]]:
        batch = [self._queue.popleft()]
        size = len(batch[0][1])
        while self._queue and len(batch) < MAX_JOBS and not _counts(batch[0]) and not _counts(self._queue[0]):
            size += len(self._queue[0][1])
            if size > MAX_BYTES:
                break
            batch.append(self._queue.popleft())
        return batch

    async def _send(self, batch: list[tuple[bytes, bytes, asyncio.Future[list[Any]]]]) -> None:
        try:
            args = [part for spec, argument, _ in batch for part in (spec, argument)]
            replies = await self._engine.call("enqueue", *args)
        except JQError as error:
            if len(batch) == 1 or error.code not in _REFUSALS:
                for _, _, future in batch:
                    _fail(future, error)
                return
            # After a refusal nothing has changed, so each job can stand for itself, in the same order. After
            # a lost connection the batch may have been taken: trying again could enqueue everything twice.
            for item in batch:
                await self._send([item])
        except asyncio.CancelledError:
            for _, _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            for _, _, future in batch:
                _fail(future, error)
        else:
            for at, (_, _, future) in enumerate(batch):
                if not future.done():
                    future.set_result(replies[2 * at : 2 * at + 2])


def _counts(item: tuple[bytes, bytes, asyncio.Future[list[Any]]]) -> bool:
    """Whether a job may name others by their index in the call: then it must not stand among strangers."""
    return b"depends" in item[0]


def _fail(future: asyncio.Future[list[Any]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
