"""Carries bulk operations on: what is to be done to many jobs goes on when whoever asked for it has left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from jqmaster.connection.wake import end
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError, Unavailable

log = logging.getLogger("jqmaster.bulks")

LOOK_EVERY_S = 10.0  # for those that another left; its own are begun at once


class Bulks:
    """One of each at a time here; other masters leave them alone. `start`, then `stop`."""

    def __init__(self, engine: Engine, master: str) -> None:
        self._engine = engine
        self._master = master
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by id
        self._poked = asyncio.Event()

    def start(self) -> None:
        """Begin to look."""
        self._tasks[""] = asyncio.create_task(self._run(), name="bulks")

    def poke(self) -> None:
        """Look now: one has begun."""
        self._poked.set()

    async def stop(self) -> None:
        """Leave what is under way to others."""
        await end(list(self._tasks.values()))

    async def _run(self) -> None:
        while True:
            self._poked.clear()
            try:
                bulks = await self._engine.bulks()
            except JQError as error:
                log.debug("cannot look for bulks: %s", error)
                bulks = []
            for bulk in bulks:
                # Whether nobody else has it, as far as this clock tells; Redis decides.
                is_free = not bulk.get("ended_ms") and bulk.get("until_ms", 0) <= time.time() * 1000
                if is_free and bulk["id"] not in self._tasks:
                    self._tasks[bulk["id"]] = asyncio.create_task(self._carry_on(bulk), name=f"bulk {bulk['id']}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._poked.wait()

    async def _carry_on(self, bulk: Document) -> None:
        try:
            ended = await self._engine.carry_on(bulk, self._master)
            if ended is not None and ended.get("problem"):
                log.error("bulk %s ended: %s", bulk["id"], ended["problem"])
        except Unavailable as error:
            log.warning("bulk %s: interrupted, will continue: %s", bulk["id"], error)
        finally:
            del self._tasks[bulk["id"]]
