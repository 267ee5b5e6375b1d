"""The attempts under way in a worker, and the room for more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from jqmaster.engine.replies import Job
from jqmaster.worker.notes import Notebook

log = logging.getLogger("jqmaster.worker")

Key = tuple[str, str]  # job id, token


@dataclass(slots=True, eq=False)
class Running:
    """An attempt under way here."""

    job: Job
    ends: float  # when the lease runs out, by our clock
    notes: Notebook
    task: asyncio.Task[None] = field(init=False)
    limit: asyncio.TimerHandle | None = None  # of max_runtime

    def stop(self, why: str) -> None:
        """Give it up. A thread learns of it when it asks."""
        self.notes.end(why)
        self.task.cancel()


class Slots:
    """Of one worker. Its parts share it: heartbeats, reports, and the worker that fills the slots."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: dict[Key, Running] = {}
        self.reserved = 0
        """Whose outcome is being reported together with a wish for the next job."""
        self.unreported = 0
        """Attempts that have ended and whose end is not reported yet."""
        self.draining = asyncio.Event()
        self.awake = asyncio.Event()
        """Set unless the worker was asked to be quiet."""
        self.awake.set()
        self._changed = asyncio.Event()
        self.changed = self._changed.set
        """To be called when there may be more room, or less to report."""

    @property
    def free(self) -> int:
        """How many more jobs may start now."""
        late = max(0, self.unreported - self.most)  # else jobs would end faster than it is reported
        return self.most - len(self.running) - self.reserved - late

    @property
    def takes_none(self) -> bool:
        """Whether the worker wants no more jobs."""
        return self.draining.is_set() or not self.awake.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and all is reported."""
        return not self.running and not self.unreported

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
