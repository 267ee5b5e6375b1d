"""Those who ask at the same time share calls."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from jqmaster.errors import JQError, Unavailable

# A call keeps Redis busy for as long as it takes, so it is small in entries and in bytes.
MOST = 100
MAX_BYTES = 1 << 20
LATE_S = 3.0  # as long as a call waits for what passes

_Waiting = tuple[tuple[Any, ...], asyncio.Future[list[Any]], float]


class Together:
    """The first goes at once; while its call is under way, whatever is asked goes with the next: it costs a program
    several times what one more entry costs Redis. `call` takes a list of entries, each of so many arguments, and
    replies as many values for each.

    When it refuses a call, which changes nothing, each entry is asked for alone, in the same order. After a lost
    connection they may have been heard: nothing is asked twice. Who has waited for `LATE_S` when a call fails so is
    told the same, and not asked for: else each hundred would wait for all before them while nobody answers.
    """

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call
        self._waiting: deque[_Waiting] = deque()
        self._is_asking = False
        self._task: asyncio.Task[None] | None = None

    async def get(self, *entry: Any) -> list[Any]:
        """The values of an entry. Raises what a call of its own would."""
        if self._is_asking:
            future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
            self._waiting.append((entry, future, time.monotonic()))
            return await future
        self._is_asking = True  # without a task and a future, which cost as much as the call
        try:
            reply: list[Any] = await self._call(*entry)
            return reply
        except Unavailable as error:
            self._give_up(error)
            raise
        finally:
            self._is_asking = bool(self._waiting)
            if self._is_asking:
                self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._is_asking = False

    def _take(self) -> list[_Waiting]:
        """What goes with the next call."""
        batch, size = list[_Waiting](), 0
        while self._waiting and len(batch) < MOST:
            size += sum(map(len, self._waiting[0][0]))
            if batch and size > MAX_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        batch = [waiting for waiting in batch if not waiting[1].done()]
        if not batch:
            return
        try:
            reply = await self._call(*[part for entry, *_ in batch for part in entry])
        except Exception as error:
            if isinstance(error, JQError) and not isinstance(error, Unavailable) and len(batch) > 1:
                for item in batch:
                    await self._send([item])
                return
            _fail(batch, error)
            if isinstance(error, Unavailable):
                self._give_up(error)
            return
        width = len(batch[0][0])
        for index, (_, future, _) in enumerate(batch):
            if not future.done():
                future.set_result(reply[index * width : (index + 1) * width])

    def _give_up(self, error: Unavailable) -> None:
        while self._waiting and self._waiting[0][2] <= time.monotonic() - LATE_S:
            _fail([self._waiting.popleft()], error)


def _fail(batch: Sequence[_Waiting], error: Exception) -> None:
    for _, future, _ in batch:
        if not future.done():
            future.set_exception(error)
