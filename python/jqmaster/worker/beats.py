"""A worker's heartbeats: leases are renewed, what jobs say is passed on, requests to the worker heard."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.errors import Forbidden, JQError, NotFound, Unavailable, Vanished
from jqmaster.worker.ending import Ending, Outcome
from jqmaster.worker.notes import Notebook
from jqmaster.worker.trouble import Trouble

log = logging.getLogger("jqmaster.worker")

Key = tuple[str, str]  # job id, token

ALIVE_EVERY_S = 10.0  # a third of the default worker_ttl
SOONEST_RENEWAL_S = 0.05


class Source(Protocol):
    """Where jobs come from and outcomes go. All methods raise Unavailable while the other side is away."""

    async def fetch(self, count: int) -> list[Job]:
        """Wait a while for jobs; at most `count`. Cancelling it strands no job."""

    def refuse(self, name: str) -> bool:
        """Take no jobs of this name from now on. False when another name had to be forgotten for it."""

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        """Report outcomes and take up to `want` jobs in the same round trip: a state for each outcome, the
        jobs. The same `request` brings the same jobs."""

    @property
    def is_registered(self) -> bool:
        """Whether the worker is one that must show that it is alive, and can be asked to be quiet or stop."""

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        """Renew leases, and pass on what some jobs say: remaining milliseconds, LOST or CANCELLED each; and
        what is asked of the worker. Raises NotFound for a dropped worker."""

    async def listen(self, on_message: Callable[[str], None]) -> None:
        """Call `on_message` with what the worker is told at once (docs/protocol.md), as far as it can be
        heard, and with "" when something may have been missed. Runs until it is cancelled, or returns."""

    async def release(
        self,
        held: list[Key],
        *,
        delay: float = 0,
        hold: Mapping[str, float] | None = None,
        message: str = "",
    ) -> None:
        """Give jobs back. `delay`, `hold`, `message`: as in `JobReleased`. Raises NotFound for an unknown
        constraint."""

    async def register_again(self) -> bool:
        """The worker was dropped as dead and is not. Whether that is known there now; if not, that was logged."""


@dataclass(slots=True)
class Running:
    """An attempt under way here."""

    job: Job
    renews: bool
    ends: float  # when the lease runs out, by our clock
    notes: Notebook
    task: asyncio.Task[None] = field(init=False)

    def stop(self, why: str) -> None:
        """Give it up. A thread learns of it when it asks."""
        self.notes.end(why)
        self.task.cancel()


class Owner(Protocol):
    """The worker, as its heartbeats and reports know it."""

    concurrency: int
    trouble: Trouble
    reserved: int
    """Slots whose outcome is being reported together with a wish for the next job."""

    @property
    def takes_none(self) -> bool:
        """Whether it wants no more jobs."""

    def take(self, jobs: Iterable[Job]) -> None: ...

    def make_room(self) -> None:
        """Slots may be free again, or everything reported."""

    def answered(self, outcome: Outcome, state: str) -> None: ...

    def stop_job(self, key: Key, why: str) -> None:
        """An attempt is not this worker's any more."""

    def asked(self, request: str) -> None:
        """`quiet`, `stop` or ""."""


def _renewal(running: Running) -> float:
    """When its lease is to be renewed."""
    return running.ends - running.job.timeout * 2 / 3


class Heartbeats:
    """Beats for the jobs in `running`, which belongs to the worker."""

    def __init__(self, source: Source, running: Mapping[Key, Running], owner: Owner) -> None:
        self._source = source
        self._running = running
        self._owner = owner
        self._changed = asyncio.Event()
        self._beating = asyncio.Lock()
        self._last_beat = 0.0
        self._looks_at = 0.0  # when `run` looks next, unless something changes
        self._must_look = False
        self._over: list[Key] = []

    def started(self, running: Running) -> None:
        """A job has come. Most come and go before anything is due: one that is due sooner is looked at."""
        if running.renews and _renewal(running) < self._looks_at:
            self._changed.set()

    def said(self) -> None:
        """A job has said something."""
        self._changed.set()

    def look(self) -> None:
        """Beat soon: something may have been missed."""
        self._must_look = True
        self._changed.set()

    def passed(self, key: Key) -> None:
        """A job has passed its `max_runtime`. A heartbeat has it end, even if nobody picks jobs now."""
        self._over.append(key)
        self._changed.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            if self._over:
                over, self._over = self._over, []
                with contextlib.suppress(JQError):
                    await self._source.heartbeat(over, {})
            _, noted, renewal = self._due()
            now = time.monotonic()
            wait_s = min(ALIVE_EVERY_S, max(SOONEST_RENEWAL_S, renewal - now))
            if noted or self._must_look:
                wait_s = min(wait_s, max(0.0, self._last_beat + SOONEST_RENEWAL_S - now))
            self._looks_at = now + wait_s
            self._changed.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
                if wait_s > 0:
                    continue
            except TimeoutError:
                pass
            held, noted, renewal = self._due()  # without those that have ended meanwhile
            if not noted or renewal <= time.monotonic():
                noted = held + [running for running in noted if not running.renews]
            self._must_look = False
            if noted or self._source.is_registered:
                await self._renew(noted)

    def _due(self) -> tuple[list[Running], list[Running], float]:
        """Whose leases are renewed, who has something to say, and when the first renewal is due."""
        held = [running for running in self._running.values() if running.renews]
        noted = [running for running in self._running.values() if running.notes.has_more]
        return held, noted, min(map(_renewal, held), default=float("inf"))

    async def _renew(self, sent: list[Running]) -> None:
        self._last_beat = time.monotonic()
        try:
            beat = await self._beat(sent)
        except NotFound:
            await self._source.register_again()
            return
        except JQError as error:
            self._owner.trouble.met("renew leases", error)
            await asyncio.sleep(1 if isinstance(error, Vanished) else SOONEST_RENEWAL_S)
            return
        self._owner.trouble.over("renew leases")
        now = time.monotonic()
        for running, answer in zip(sent, beat.answers, strict=True):
            if isinstance(answer, int):
                # 0: it has run for as long as it may, and may still say how it ended.
                running.ends = now + (answer / 1000 or running.job.timeout)
            else:
                self._owner.stop_job(running.job.held, answer)
        self._owner.asked(beat.request)

    async def _beat(self, sent: list[Running]) -> Beat:
        """One heartbeat, with what these jobs have to say. One at a time: the later of two might overtake."""
        async with self._beating:
            taken = [(running, note) for running in sent if (note := running.notes.take()) is not None]
            keys = [running.job.held for running in sent]
            try:
                return await self._source.heartbeat(keys, {running.job.held: note for running, note in taken})
            except (NotFound, Forbidden, Unavailable):
                for running, note in taken:
                    running.notes.put_back(note)
                raise
            except JQError:
                if not taken:
                    raise
                for running, note in taken:
                    await self._tell(running, note)
                return await self._source.heartbeat(keys, {})

    async def _tell(self, running: Running, note: Note) -> None:
        """Pass on what one job says, on its own: if it is refused, that must not cost other jobs their leases."""
        job = running.job
        try:
            await self._source.heartbeat([job.held], {job.held: note})
        except JQError as error:
            log.error("job %s (%s): its progress or checkpoint is refused, and dropped: %s", job.id, job.name, error)

    async def tell_rest(self, running: Running, ending: Ending) -> None:
        """Pass on what the job has said at its end. A checkpoint must arrive before the attempt is over."""
        failures = 0
        while True:
            try:
                if not self._beating.locked() and not running.notes.has_more:
                    return
                await self._beat([running])
                return
            except JQError as error:
                is_success = isinstance(ending, Outcome) and ending.is_success
                if is_success or not isinstance(error, Unavailable) or time.monotonic() > running.ends:
                    log.warning("job %s: what it said last is lost: %s", running.job.id, error)
                    return
                await asyncio.sleep(backoff_s(failures))
                failures += 1
