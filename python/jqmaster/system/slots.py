"""Slots of the registered workers of a system, for jobs of other partitions than a worker's own. docs/partitions.md,
"Pushing", tells how they are kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.systems import Room
from jqmaster.errors import JQError, Unavailable
from jqmaster.system.partitions import Partitions
from jqmaster.system.record import partition_of

log = logging.getLogger("jqmaster.system")

BATCH = 1000  # changes of one call
TELLS_S = 30.0  # so long a partition that does not answer is told; then its slots end with the leases
KEEP_S = 2.0  # within which it has to say that a slot is kept
_REGISTERED = re.compile("w[0-9a-f]{14}(?:[0-9a-f]{2})?")

Slot = tuple[str, str, str]
"""A worker, a job, and the token of its attempt."""


def home_of(worker: object) -> int | None:
    """The number of the partition that a registered worker belongs to; None for others."""
    return partition_of(worker[1:]) if isinstance(worker, str) and _REGISTERED.fullmatch(worker) else None


class Home:
    """A partition whose workers run jobs of others. Calls go to it one after the other, each with all that came
    meanwhile."""

    def __init__(self, number: int, slots: Slots) -> None:
        self.rooms: dict[str, Room] = {}
        self._number = number
        self._slots = slots
        self._ms: dict[Slot, int] = {}
        self._kept: dict[Slot, asyncio.Future[bool]] = {}
        self._is_asked = False
        self._task: asyncio.Task[None] | None = None

    def tell(self, slot: Slot, ms: int) -> None:
        """A slot is kept for so long, or with 0 no more."""
        self._ms[slot] = ms
        self.ask()

    async def keep(self, slot: Slot, ms: int) -> bool:
        """Whether there is a slot for a job. Where that is not known there is none."""
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._kept[slot] = found
        self.tell(slot, ms)
        try:
            async with asyncio.timeout(KEEP_S):
                return await found
        except (TimeoutError, JQError):
            self.tell(slot, 0)
            return False
        except asyncio.CancelledError:
            self.tell(slot, 0)
            raise
        finally:
            if self._kept.get(slot) is found:
                del self._kept[slot]

    def ask(self) -> None:
        """Look who has room."""
        self._is_asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"slots of partition {self._number}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    # -- parts ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures, since = 0, asyncio.get_running_loop().time()
        while self._is_asked or self._ms:
            self._is_asked = False
            told = {slot: self._ms.pop(slot) for slot in list(self._ms)[:BATCH]}
            try:
                engine = (await self._slots.system.partitions())[self._number]
                answers, rooms = await engine.slots([(*slot, ms) for slot, ms in told.items()], limit=self._slots.limit)
            except JQError as problem:
                self.rooms = {}
                self._ended(told, problem)
                now = asyncio.get_running_loop().time()
                if not isinstance(problem, Unavailable) or now - since > TELLS_S:
                    log.warning("slots of partition %d are not told: %s", self._number, problem)
                    self._ms.clear()
                    return
                self._ms = {slot: ms for slot, ms in told.items() if slot not in self._kept} | self._ms
                await asyncio.sleep(backoff_s(failures))
                failures += 1
                continue
            failures, since = 0, asyncio.get_running_loop().time()
            self._adopt(told, answers, rooms)

    def _adopt(self, told: dict[Slot, int], answers: list[bool], rooms: list[Room]) -> None:
        self.rooms = {one.worker: one for one in rooms}
        for slot, is_kept in zip(told, answers, strict=True):
            if told[slot] and slot in self._kept and not self._kept[slot].done():
                self._kept[slot].set_result(is_kept)
        for slot, ms in self._ms.items():  # which this answer knows nothing of
            if ms and slot in self._kept and slot[0] in self.rooms:
                self.rooms[slot[0]].free -= 1
        self._slots.changed()

    def _ended(self, told: dict[Slot, int], problem: JQError) -> None:
        for slot in told:
            if slot in self._kept and not self._kept[slot].done():
                self._kept[slot].set_exception(problem)


class Slots:
    """Of all partitions, as one process knows them."""

    def __init__(self, system: Partitions) -> None:
        self.system = system
        self.limit = 0  # how many workers with room a partition tells; who pushes wants to know
        self.changed: Callable[[], None] = lambda: None
        self._homes: dict[int, Home] = {}

    def of(self, number: int) -> Home:
        """What is known of a partition."""
        if number not in self._homes:
            self._homes[number] = Home(number, self)
        return self._homes[number]

    def renewed(self, worker: object, job_id: str, token: str, ms: int = 0) -> None:
        """A lease ends so much later; with 0 the worker has the job no more."""
        home = home_of(worker)
        if home is not None and home != partition_of(job_id):
            self.of(home).tell((str(worker), job_id, token), ms)
        else:
            self.stirred(worker)

    def stirred(self, worker: object) -> None:
        """It may have room."""
        home = home_of(worker)
        if home is not None and self.limit:
            self.of(home).ask()

    async def stop(self) -> None:
        """What was not told is left to the end of the leases."""
        self.changed = lambda: None
        homes, self._homes = list(self._homes.values()), {}
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*(one.stop() for one in homes))
