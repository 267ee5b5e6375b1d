"""A worker's heartbeats: leases are renewed, what jobs say is passed on, requests to the worker heard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.replies import Beat
from jqmaster.errors import JQError, NotFound
from jqmaster.worker.slots import Running, Slots, now
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.trouble import PASSES, Trouble

log = logging.getLogger("jqmaster.worker")

ALIVE_EVERY_S = 10.0  # a third of the default worker_ttl
SOONEST_S = 0.05  # after the beat before


class Heartbeats:
    """Beats for what runs in `slots`. `asked` is told what is asked of the worker: `quiet`, `stop` or ""."""

    def __init__(self, source: EngineSource, slots: Slots, trouble: Trouble, asked: Callable[[str], None]) -> None:
        self._source = source
        self._slots = slots
        self._trouble = trouble
        self._asked = asked
        self._changed = asyncio.Event()
        self._beating = asyncio.Lock()
        self._failures = 0
        self._last = 0.0
        self._next = 0.0
        self._must_beat = False
        self.said = self._changed.set
        """To be called when a job has said something."""

    def started(self, running: Running) -> None:
        """A job has come. Most come and go before anything is due: one that is due sooner is looked at."""
        if running.renews < self._next:
            self._changed.set()

    def look(self) -> None:
        """Beat soon: something may have been missed."""
        self._must_beat = True
        self._changed.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            at, running = now(), list(self._slots.running.values())
            noted = [attempt for attempt in running if attempt.notes.has_more]
            renews = min((attempt.renews for attempt in running), default=at + ALIVE_EVERY_S)
            due = 0.0 if noted or self._must_beat else min(renews, self._last + ALIVE_EVERY_S)
            self._next = max(due, self._last + SOONEST_S)
            if self._next <= at:
                only_notes = noted and renews > at and not self._must_beat
                self._must_beat = False
                await self._renew(noted if only_notes else running)
                continue
            self._changed.clear()
            try:
                async with asyncio.timeout(self._next - at):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _renew(self, sent: list[Running]) -> None:
        asked = self._last = now()
        if not sent and not self._source.is_registered:
            return
        try:
            beat = await self._beat(sent)
        except NotFound:
            await self._source.register_again()
        except JQError as error:
            self._trouble.met("renew leases", error)
            await asyncio.sleep(backoff_s(self._failures))
            self._failures += 1
        else:
            self._failures = 0
            self._trouble.over("renew leases")
            for attempt, answer in zip(sent, beat.answers, strict=True):
                if isinstance(answer, int):
                    attempt.leased(answer / 1000, asked)
                else:
                    self._slots.stop(attempt.job.held, answer)
            self._slots.changed()
            self._asked(beat.request)

    async def _beat(self, sent: list[Running]) -> Beat:
        """One heartbeat, with what these jobs have to say. One at a time: the later of two might overtake."""
        async with self._beating:
            return await self._send(sent)

    async def _send(self, sent: list[Running]) -> Beat:
        noted = [(attempt, note) for attempt in sent if (note := attempt.notes.take()) is not None]
        try:
            notes = {attempt.job.held: note for attempt, note in noted}
            return await self._source.heartbeat([attempt.job.held for attempt in sent], notes)
        except JQError as error:
            is_refused = noted and not isinstance(error, (NotFound, *PASSES))
            if is_refused and len(sent) == 1:
                job = sent[0].job
                log.error("job %s (%s): progress or checkpoint refused and dropped: %s", job.id, job.name, error)
                return await self._send(sent)
            for attempt, note in noted:
                attempt.notes.put_back(note)
            if not is_refused:
                raise
        # What one job says must not cost other jobs their leases.
        beats = [await self._send([attempt]) for attempt in sent]
        return Beat([answer for beat in beats for answer in beat.answers], beats[-1].request)

    async def tell_rest(self, said: list[Running], *, is_success: bool) -> None:
        """Pass on what jobs have said at their ends. Without `is_success` it must arrive before these are reported: a
        checkpoint is where the next attempt begins."""
        failures = 0
        while self._beating.locked() or any(attempt.notes.has_more for attempt in said):
            try:
                await self._beat(said)
                return
            except JQError as error:
                is_over = now() > max(attempt.ends for attempt in said)
                if is_success or is_over or not isinstance(error, PASSES):
                    ids = ", ".join(attempt.job.id for attempt in said)
                    log.warning("job %s: its last progress is lost: %s", ids, error)
                    return
                await asyncio.sleep(backoff_s(failures))
                failures += 1
