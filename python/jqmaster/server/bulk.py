"""Carries bulk operations on: what is to be done to many jobs goes on when whoever asked for it has left."""

from __future__ import annotations

import asyncio
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
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._poked = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._loop_task = asyncio.create_task(self._run(), name="bulks")

    def poke(self) -> None:
        """Look now: one has begun."""
        self._poked.set()

    async def stop(self) -> None:
        """Leave what is under way to others."""
        await end([*self._under_way.values(), self._loop_task])

    async def _run(self) -> None:
        while True:
            self._poked.clear()
            try:
                for bulk in await self._engine.bulks():
                    if not bulk.get("ended_ms") and bulk["id"] not in self._under_way and _is_free(bulk):
                        self._begin(bulk)
            except JQError as error:
                log.debug("cannot look for bulks: %s", error)
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._poked.wait()
            except TimeoutError:
                pass

    def _begin(self, bulk: Document) -> None:
        work = asyncio.create_task(self._carry_on(bulk), name=f"bulk {bulk['id']}")
        self._under_way[bulk["id"]] = work
        work.add_done_callback(lambda _: self._under_way.pop(bulk["id"], None))

    async def _carry_on(self, bulk: Document) -> None:
        try:
            ended = await self._engine.carry_on(bulk, self._master)
        except Unavailable as error:
            log.warning("bulk %s: interrupted, will continue: %s", bulk["id"], error)
        else:
            if ended is not None and ended.get("problem"):
                log.error("bulk %s ended: %s", bulk["id"], ended["problem"])


def _is_free(bulk: Document) -> bool:
    """Whether nobody has it, as far as this clock tells; Redis decides."""
    return bool(bulk.get("until_ms", 0) <= time.time() * 1000)
