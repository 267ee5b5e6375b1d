"""The attempts under way in a worker, and the room for more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from jqmaster.engine.replies import Job
from jqmaster.worker.ending import Ending
from jqmaster.worker.notes import Notebook

log = logging.getLogger("jqmaster.worker")

Key = tuple[str, str]  # job id, token

now = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""The clock of leases. It goes on while the machine sleeps, which Linux' monotonic one does not."""


@dataclass(slots=True, eq=False)
class Running:
    """An attempt under way here."""

    job: Job
    notes: Notebook
    task: asyncio.Task[None] = field(init=False)
    ends: float = field(init=False)  # when the lease runs out, by our clock, or later
    renews: float = field(init=False)  # when it is to be renewed

    def leased(self, lease_s: float, since: float) -> None:
        """Its lease is good for so long since it was asked for: less and less towards the end of its `max_runtime`."""
        self.ends = since + lease_s
        self.renews = self.ends - lease_s * 2 / 3

    def stop(self, why: str) -> None:
        """Give it up. A thread learns of it when it asks."""
        self.notes.end(why)
        self.task.cancel()


class Slots:
    """Of one worker. Its parts share it: heartbeats, reports, and the worker that fills the slots."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: dict[Key, Running] = {}
        self.ended: list[tuple[Ending, Running | None]] = []
        """What is to be reported, with the attempt if it has said something: each has its slot until its report is
        under way."""
        self.reporting = 0
        """Attempts whose report is under way."""
        self.reserved = 0
        """Slots for jobs that these reports ask for."""
        self.left: Callable[[], int] = lambda: 0
        """How many are taken by threads that run on although their jobs were given up."""
        self.takes = True
        """Whether the worker wants more jobs; not when it stops, or was asked to be quiet."""
        self.is_full = False
        """Whether nobody fetches, as all slots are taken: who reports asks for the next jobs as well."""
        self._changed = asyncio.Event()
        self.changed = self._changed.set
        """To be called when there may be more room, or less to report."""

    @property
    def free(self) -> int:
        """How many more jobs may start now."""
        return self.most - len(self.running) - len(self.ended) - self.reserved - self.left()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and all is reported."""
        return not (self.running or self.ended or self.reporting)

    async def until(self, is_over: Callable[[], bool]) -> None:
        """Wait for it; looked at when something has changed."""
        while not is_over():
            self._changed.clear()
            await self._changed.wait()

    def stop(self, key: Key, why: str) -> None:
        """Give an attempt up, if it runs here."""
        if (running := self.running.get(key)) is not None:
            log.warning("job %s attempt %d: %s, stopping it", running.job.id, running.job.attempt, why)
            running.stop(why)
