"""A worker's heartbeats: leases are renewed, what jobs say is passed on, requests to the worker heard."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.replies import Beat, Note
from jqmaster.errors import Forbidden, JQError, NotFound, Unavailable, Vanished
from jqmaster.worker.ending import Ending, Outcome
from jqmaster.worker.slots import Key, Running, Slots
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.trouble import Trouble

log = logging.getLogger("jqmaster.worker")

ALIVE_EVERY_S = 10.0  # a third of the default worker_ttl
SOONEST_RENEWAL_S = 0.05


def _renewal(running: Running) -> float:
    """When its lease is to be renewed."""
    return running.ends - running.job.timeout * 2 / 3


class Heartbeats:
    """Beats for what runs in `slots`. `asked` is told what is asked of the worker: `quiet`, `stop` or ""."""

    def __init__(self, source: EngineSource, slots: Slots, trouble: Trouble, asked: Callable[[str], None]) -> None:
        self._source = source
        self._slots = slots
        self._trouble = trouble
        self._asked = asked
        self._changed = asyncio.Event()
        self._beating = asyncio.Lock()
        self._last_beat = 0.0
        self._looks_at = 0.0  # when `run` looks next, unless something changes
        self._must_beat = False
        self._over: list[Key] = []
        self.said = self._changed.set
        """To be called when a job has said something."""

    def started(self, running: Running) -> None:
        """A job has come. Most come and go before anything is due: one that is due sooner is looked at."""
        if _renewal(running) < self._looks_at:
            self._changed.set()

    def look(self) -> None:
        """Beat soon: something may have been missed."""
        self._must_beat = True
        self._changed.set()

    def passed(self, key: Key) -> None:
        """A job has passed its `max_runtime`. A heartbeat has it end, even if nobody picks jobs now."""
        self._over.append(key)
        self.look()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            now = time.monotonic()
            renewal = min(map(_renewal, self._slots.running.values()), default=float("inf"))
            wait_s = min(ALIVE_EVERY_S, max(SOONEST_RENEWAL_S, renewal - now))
            if self._noted() or self._must_beat:
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
            running = list(self._slots.running.values())  # without those that have ended meanwhile
            if min(map(_renewal, running), default=0) > time.monotonic():
                running = self._noted() or running
            self._must_beat = False
            if running or self._over or self._source.is_registered:
                await self._renew(running)

    def _noted(self) -> list[Running]:
        return [running for running in self._slots.running.values() if running.notes.has_more]

    async def _renew(self, sent: list[Running]) -> None:
        self._last_beat = time.monotonic()
        over, self._over = self._over, []
        try:
            beat = await self._beat(sent, over)
        except NotFound:
            await self._source.register_again()
            return
        except JQError as error:
            self._trouble.met("renew leases", error)
            await asyncio.sleep(1 if isinstance(error, Vanished) else SOONEST_RENEWAL_S)
            return
        self._trouble.over("renew leases")
        now = time.monotonic()
        for running, answer in zip(sent, beat.answers, strict=False):
            if isinstance(answer, int):
                # 0: it has run for as long as it may, and may still say how it ended.
                running.ends = now + (answer / 1000 or running.job.timeout)
            else:
                self._slots.stop(running.job.held, answer)
        self._asked(beat.request)

    async def _beat(self, sent: list[Running], over: list[Key] = []) -> Beat:  # noqa: B006
        """One heartbeat, with what these jobs have to say. One at a time: the later of two might overtake."""
        async with self._beating:
            taken = [(running, note) for running in sent if (note := running.notes.take()) is not None]
            keys = [*(running.job.held for running in sent), *over]
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
            log.error("job %s (%s): progress or checkpoint refused and dropped: %s", job.id, job.name, error)

    async def tell_rest(self, running: Running, ending: Ending) -> None:
        """Pass on what the job has said at its end. A checkpoint must arrive before the attempt is over."""
        failures = 0
        while self._beating.locked() or running.notes.has_more:
            try:
                await self._beat([running])
                return
            except JQError as error:
                is_success = isinstance(ending, Outcome) and ending.is_success
                if is_success or not isinstance(error, Unavailable) or time.monotonic() > running.ends:
                    log.warning("job %s: its last progress is lost: %s", running.job.id, error)
                    return
                await asyncio.sleep(backoff_s(failures))
                failures += 1
