"""Many who ask at the same time share calls: while one is under way, whatever is asked goes with the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from jqmaster.errors import JQError, Unavailable

K = TypeVar("K")
V = TypeVar("V")

MOST = 200


class Together(Generic[K, V]):
    """`ask` gets up to `MOST` keys, and gives a value or an error for each. When it refuses all of them,
    which changes nothing, each is asked for alone."""

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Sequence[V | JQError]]]) -> None:
        self._ask = ask
        self._waiting: deque[tuple[K, asyncio.Future[V]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def get(self, key: K) -> V:
        """What `ask` gives for `key`. Raises what it raises."""
        future: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                most = min(MOST, len(self._waiting))
                await self._send([self._waiting.popleft() for _ in range(most)])
        finally:
            self._task = None
            # Only when this task was cancelled (the loop is closing) is anything left.
            while self._waiting:
                self._waiting.popleft()[1].cancel()

    async def _send(self, batch: Sequence[tuple[K, asyncio.Future[V]]]) -> None:
        batch = [(key, future) for key, future in batch if not future.done()]
        if not batch:
            return
        try:
            answers: Sequence[V | JQError] = await self._ask([key for key, _ in batch])
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            if isinstance(error, JQError) and not isinstance(error, Unavailable) and len(batch) > 1:
                for one in batch:
                    await self._send([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, JQError):
                future.set_exception(answer)
            else:
                future.set_result(answer)
