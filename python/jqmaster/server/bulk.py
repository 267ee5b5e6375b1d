"""Carries bulk operations on: what is to be done to many jobs goes on when whoever asked for it has left."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from jqmaster.connection.wake import end
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError

log = logging.getLogger("jqmaster.bulks")

LOOK_EVERY_S = 10.0  # for those that another left; its own are begun at once


class Bulks:
    """One at a time; masters leave those of others alone. `start`, then `stop`, which leaves the rest to others."""

    def __init__(self, engine: Engine, master: str) -> None:
        self._engine = engine
        self._master = master
        self._task: asyncio.Task[None] | None = None
        self._poked = asyncio.Event()

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="bulks")

    def poke(self) -> None:
        """Look now: one has begun."""
        self._poked.set()

    async def stop(self) -> None:
        """Leave what is under way to others."""
        await end([self._task])

    async def _run(self) -> None:
        while True:
            self._poked.clear()
            try:
                for bulk in await self._engine.bulks():
                    ended = None if "ended_ms" in bulk else await self._engine.carry_on(bulk, self._master)
                    if ended is not None and ended.get("problem"):
                        log.error("bulk %s ended: %s", bulk["id"], ended["problem"])
            except JQError as error:
                log.warning("cannot carry on with bulk operations, trying again: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._poked.wait()
