"""Waking many listeners: a few at a time, so that requests have their turn in between."""

from __future__ import annotations

import asyncio
import random
from collections import deque

AT_ONCE = 20
REST = 2  # times as long as those took that were woken


class Fanout:
    """Listeners `wait`, `tell` wakes them. Who comes late finds all that was told meanwhile, at once."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._due: deque[asyncio.Future[None]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, most_s: float) -> bool:
        """Until the next `tell`: true. False when none came for about so long: somewhat less, by chance, as
        many who began together should not end together."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[woken] = None
        try:
            async with asyncio.timeout(most_s * random.uniform(0.7, 1.0)):
                await woken
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(woken, None)
        return True

    def tell(self) -> None:
        """Have all who wait now look, the first of them at once and the others soon."""
        self._due.extend(self._waiting)
        self._waiting.clear()
        if self._task is None and self._due:
            self._wake_some()
            if self._due:
                self._task = asyncio.create_task(self._run(), name="fanout")

    def _wake_some(self) -> None:
        woken = 0
        while self._due and woken < AT_ONCE:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(None)
                woken += 1

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._due:
                began = loop.time()
                self._wake_some()
                for _ in range(2):  # what they do happens in the next turns of the loop
                    await asyncio.sleep(0)
                await asyncio.sleep(REST * (loop.time() - began))
        finally:
            self._task = None
