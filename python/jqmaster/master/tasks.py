"""Carries tasks on: what is to be done to many jobs goes on when whoever asked for it has left."""

from __future__ import annotations

import asyncio
import logging
import time

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError, Unavailable

log = logging.getLogger("jqmaster.tasks")

LOOK_EVERY_S = 15.0  # for those that another left; its own are begun at once


class Tasks:
    """One of each at a time here; other masters leave them alone. `start`, then `stop`."""

    def __init__(self, engine: Engine, master: str) -> None:
        self._engine = engine
        self._master = master
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._poked = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._loop_task = asyncio.create_task(self._run(), name="tasks")

    def poke(self) -> None:
        """Look now: one has begun."""
        self._poked.set()

    async def stop(self) -> None:
        """Leave what is under way to others."""
        ending = [*self._under_way.values(), *([self._loop_task] if self._loop_task else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._poked.clear()
            try:
                for task in await self._engine.tasks():
                    if not task.get("ended_ms") and task["id"] not in self._under_way and _is_free(task):
                        self._begin(task)
            except JQError as error:
                log.debug("cannot look for tasks: %s", error)
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._poked.wait()
            except TimeoutError:
                pass

    def _begin(self, task: Document) -> None:
        work = asyncio.create_task(self._carry_on(task), name=f"task {task['id']}")
        self._under_way[task["id"]] = work
        work.add_done_callback(lambda _: self._under_way.pop(task["id"], None))

    async def _carry_on(self, task: Document) -> None:
        try:
            ended = await self._engine.carry_on(task, self._master)
        except Unavailable as error:
            log.warning("task %s is left for now: %s", task["id"], error)
        else:
            if ended is not None and ended.get("problem"):
                log.error("task %s ended: %s", task["id"], ended["problem"])


def _is_free(task: Document) -> bool:
    """Whether nobody has it, as far as this clock tells; Redis decides."""
    return bool(task.get("until_ms", 0) <= time.time() * 1000)
