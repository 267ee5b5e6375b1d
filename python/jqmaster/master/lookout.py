"""How the partitions of a system are, looked up once for all who ask."""

from __future__ import annotations

import asyncio
import time

from jqmaster.connection.together import Shared
from jqmaster.engine.replies import Document
from jqmaster.errors import Unavailable
from jqmaster.system import looking
from jqmaster.system.engine import SystemEngine
from jqmaster.system.looking import Look

EVERY_S = 2.0
_ANSWER_S = 2.0  # of one partition
_MOST_LOOK_S = 6.0
_PATIENCE_S = 3.0  # of who has something older
_OLD_S = 30.0  # then it is no answer any more
_REST = 100  # times as long as it took to count jobs, and to compare settings
_MOST_REST_S = 60.0
_SETTINGS_S = 10.0  # how often they are compared, and how long a partition has to tell them
_MOST_SETTINGS_REST_S = 300.0
_FIRST_SETTINGS_S = 1.0
_STOP_S = 2.0


class Lookout:
    """Looks at the partitions for those who ask. Nothing to start. Settings are compared beside that, as it may take
    longer: what they were before is told meanwhile."""

    def __init__(self, engine: SystemEngine) -> None:
        self._engine = engine
        self._looking = Shared(self._look_now)
        self._found: Look | None = None
        self._found_at = self._jobs_at = 0.0
        self._behind: dict[int, list[str]] | None = None
        self._compare_at = 0.0
        self._comparing: asyncio.Task[None] | None = None

    async def look(self) -> Look:
        """As of two seconds ago, but for jobs, which are counted less often where that takes long. Raises Unavailable
        where no partition answers, within some seconds."""
        age_s = time.monotonic() - self._found_at
        if self._found is None or age_s >= EVERY_S:
            is_old = self._found is None or age_s >= _OLD_S
            try:
                await self._looking.get(_MOST_LOOK_S if is_old else _PATIENCE_S)
            except Unavailable:
                if is_old or self._looking.task is None or self._looking.task.done():
                    raise
        assert self._found is not None
        return self._found

    async def document(self) -> Document:
        """As `Look.document`. Raises as `look`."""
        found = await self.look()
        if self._behind is None and self._comparing is not None:
            await asyncio.wait({self._comparing}, timeout=_FIRST_SETTINGS_S)
        return found.document(self._behind or {})

    async def stop(self) -> None:
        """End what is under way; bounded."""
        tasks = {task for task in (self._looking.task, self._comparing) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_S)

    async def _look_now(self) -> None:
        known = self._found if time.monotonic() < self._jobs_at else None
        found = await looking.look(self._engine, within_s=_ANSWER_S, known=known)
        self._found, self._found_at = found, time.monotonic()
        if known is None:
            self._jobs_at = self._found_at + min(found.took_s * _REST, _MOST_REST_S)
        if time.monotonic() >= self._compare_at and (self._comparing is None or self._comparing.done()):
            self._comparing = asyncio.create_task(self._compare(found), name="settings of partitions")

    async def _compare(self, found: Look) -> None:
        began = time.monotonic()
        self._behind = await looking.compare(self._engine, found, within_s=_SETTINGS_S)
        ended = time.monotonic()
        self._compare_at = ended + max(_SETTINGS_S, min((ended - began) * _REST, _MOST_SETTINGS_REST_S))
