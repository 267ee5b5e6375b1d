"""The attempts under way in a worker: the room for more, heartbeats for what runs, with what jobs say of themselves;
reports of what became of them, and with these the wish for the next ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from jqmaster.engine.calling import new_request
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError
from jqmaster.worker import ending as endings
from jqmaster.worker.ending import Outcome, text_of
from jqmaster.worker.log import log
from jqmaster.worker.notes import Notebook
from jqmaster.worker.sources import PASSES, EngineSource, Key, until_heard
from jqmaster.worker.threads import Threads

ALIVE_EVERY_S = 10.0  # a third of the default worker_ttl
SOONEST_S = 0.05  # after the beat before
BATCH = 100
BATCH_BYTES = 64 << 20  # of results; a single one may have more
PUT_OFF_S = 10.0  # where a release is refused
REASON_CHARACTERS = 80  # of its message then

now = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""The clock of leases. It goes on while the machine sleeps, which Linux' monotonic one does not."""


class Running(Notebook):
    """An attempt under way here, and what it says."""

    task: asyncio.Task[None]

    def __init__(self, job: Job, tell: Callable[[], object]) -> None:
        super().__init__(tell)
        self.job = job

    def leased(self, lease_s: float, since: float) -> None:
        """Its lease is good for so long since it was asked for: less and less towards the end of its `max_runtime`."""
        self.ends = since + lease_s  # by our clock, or later
        self.renews = self.ends - lease_s * 2 / 3

    def stop(self, why: str) -> None:
        """Give it up. A thread learns of it when it asks."""
        self.over = why
        self.task.cancel()


class Attempts:
    """Of one worker. `take` gets the next jobs, and when they were asked for; `asked` what is asked of the worker:
    `quiet`, `stop` or ""; `answered` what was said to an outcome: the job's state, or in upper case why it is
    refused."""

    def __init__(
        self, most: int, source: EngineSource, threads: Threads, take: Callable[[list[Job], float], None],
        asked: Callable[[str], None], answered: Callable[[Outcome, str], None],
    ) -> None:  # fmt: skip
        self.most = most
        self.running: dict[Key, Running] = {}
        self.takes = True
        """Whether the worker wants more jobs; not when it stops, or was asked to be quiet."""
        self.is_full = False
        """Whether nobody fetches, as all slots are taken: who reports asks for the next jobs as well."""
        self._source, self._threads = source, threads
        self._take, self._asked, self._answered = take, asked, answered
        self._ended: list[tuple[Outcome, Running | None]] = []
        """What is to be reported, with the attempt if it has said something: each has its slot until its report is
        under way."""
        self._reporting = 0  # attempts whose report is under way
        self._reserved = 0  # slots for jobs that these reports ask for
        self._changed, self._has_ended, self._must_beat = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._beating = asyncio.Lock()
        self._last = self._next = 0.0  # heartbeat
        self.changed = threads.told = self._changed.set
        """To be called when there may be more room, or less to report."""
        self.said = self._must_beat.set
        """To be called when a job has said something."""

    @property
    def free(self) -> int:
        """How many more jobs may start now. Threads that run on although their jobs were given up take slots, too."""
        return self.most - len(self.running) - len(self._ended) - self._reserved - self._threads.left

    @property
    def is_reported(self) -> bool:
        """Whether all that has ended is reported."""
        return not (self._ended or self._reporting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and all is reported."""
        return self.is_reported and not self.running

    async def until(self, is_over: Callable[[], bool]) -> None:
        """Wait for it; looked at when something has changed."""
        while not is_over():
            self._changed.clear()
            await self._changed.wait()

    def add(self, running: Running) -> None:
        """One has begun. Most are over before anything is due: one that is due sooner is looked at."""
        self.running[running.job.held] = running
        # Cancelled before it began, it would never take itself off the list.
        running.task.add_done_callback(partial(self._gone, running))
        if running.renews < self._next:
            self._must_beat.set()

    def end(self, outcome: Outcome, said: Running | None = None) -> None:
        """Report it soon. `said`: the attempt, where it has said something that must come before."""
        self._ended.append((outcome, said))
        self._has_ended.set()

    def _gone(self, running: Running, _task: asyncio.Task[None]) -> None:
        del running.task  # whose context holds the notebook: a circle would wait for the collector
        self.running.pop(running.job.held, None)
        self.changed()

    # -- heartbeats -------------------------------------------------------------------------------

    def look(self) -> None:
        """Beat soon: something was said to the worker, or may have been missed."""
        self._last = 0.0
        self._must_beat.set()

    async def beat(self) -> None:
        """Renew leases until cancelled."""
        while True:
            at, running = now(), list(self.running.values())
            due = min([self._last + ALIVE_EVERY_S, *(attempt.renews for attempt in running if attempt.over is None)])
            is_noted = any(attempt.has_more for attempt in running)
            self._next = max(0.0 if is_noted else due, self._last + SOONEST_S)
            if self._next > at:
                self._must_beat.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._next - at):
                        await self._must_beat.wait()
                continue
            self._last = at
            await until_heard("renew leases", partial(self._beat, self.running, of_all=due <= at), gives_up=False)

    async def _beat(self, attempts: Mapping[Key, Running], *, of_all: bool) -> None:
        """One heartbeat; without `of_all` for those that have something to say. One at a time: the later of two might
        overtake."""
        async with self._beating:
            sent = [one for one in attempts.values() if one.has_more or (of_all and one.over is None)]
            if sent or (of_all and self._source.is_registered):
                await self._send(sent)

    async def _send(self, sent: list[Running]) -> None:
        asked = now()
        noted = [(attempt, note) for attempt in sent if (note := attempt.take()) is not None]
        try:
            notes = {attempt.job.held: note for attempt, note in noted}
            beat = await self._source.heartbeat([attempt.job.held for attempt in sent], notes)
        except JQError as error:
            is_refused = noted and not isinstance(error, PASSES)
            if is_refused and len(sent) == 1:
                job = sent[0].job
                log.error("job %s (%s): progress or checkpoint refused and dropped: %s", job.id, job.name, error)
                return await self._send(sent)
            for attempt, note in noted:
                attempt.put_back(note)
            if not is_refused:
                raise
            for attempt in sent:  # what one job says must not cost other jobs their leases
                await self._send([attempt])
            return
        for attempt, answer in zip(sent, beat.answers, strict=True):
            if isinstance(answer, int):
                attempt.leased(answer / 1000, asked)
            elif attempt.job.held in self.running:
                log.warning("job %s attempt %d: %s, stopping it", attempt.job.id, attempt.job.attempt, answer)
                attempt.stop(answer)
        self.changed()
        self._asked(beat.request)

    # -- outcomes ---------------------------------------------------------------------------------

    async def report(self) -> None:
        """Report until cancelled. Several do so beside each other, so that one that gets no answer holds up no
        other."""
        while True:
            if not self._ended:
                self._has_ended.clear()
                await self._has_ended.wait()
                continue
            batch = self._batch()
            want = len(batch) if self.is_full and self.takes else 0
            self._reporting += len(batch)
            self._reserved += want
            self.changed()
            try:
                await self._report(batch, want)
            finally:
                self._reporting -= len(batch)
                self._reserved -= want
                self.changed()

    def _batch(self) -> list[tuple[Outcome, Running | None]]:
        # Half of the slots at most: while Redis does one half, the functions of the other run here.
        ended, size, count = self._ended, 0, 0
        for outcome, _ in ended[: min(BATCH, (self.most + 1) // 2)]:
            size += len(outcome.blob)
            if count and size > BATCH_BYTES:
                break
            count += 1
        batch, ended[:count] = ended[:count], []
        return batch

    async def _report(self, batch: list[tuple[Outcome, Running | None]], want: int) -> None:
        if said := {attempt.job.held: attempt for _, attempt in batch if attempt is not None}:
            # It must arrive before: a checkpoint is where the next attempt begins.
            try:
                await until_heard("report progress", partial(self._beat, said, of_all=False))
            except JQError as error:
                log.warning("job %s: its last progress is lost: %s", ", ".join(job_id for job_id, _ in said), error)
        outcomes = [outcome for outcome, _ in batch if outcome.spec["type"] != "released"]
        if len(outcomes) < len(batch):
            releases = (outcome for outcome, _ in batch if outcome.spec["type"] == "released")
            await asyncio.gather(*(self._give_back(outcome) for outcome in releases))
        if outcomes or want:
            await self._finish(outcomes, want)

    async def _finish(self, outcomes: list[Outcome], want: int) -> None:
        """Report until it is heard. Repeating is safe: outcomes go by their token, the jobs by the request. A success
        that is refused becomes a failure; a failure is left to its lease."""
        say, asked = partial(self._source.finish, outcomes, want, new_request()), now()
        try:
            states, jobs = await until_heard("report outcomes", say)
        except JQError as error:
            if want or len(outcomes) > 1:
                for outcome in outcomes:
                    await self._finish([outcome], 0)
                return
            [outcome] = outcomes
            log.warning("job %s: its outcome was refused: %s", outcome.job.id, error)
            if outcome.spec["type"] == "success":
                await self._finish([endings.failed(outcome.job, f"the outcome was refused: {error}")], 0)
        else:
            self._take(jobs, asked)
            for outcome, state in zip(outcomes, states, strict=True):
                self._answered(outcome, state)

    async def _give_back(self, release: Outcome, *, is_last: bool = False) -> None:
        """Release until it is heard. Where it is refused this job alone waits, and says why; or its lease runs out."""
        job, spec = release.job, release.spec
        say = partial(self._source.release, [job.held], spec["delay"], spec["hold"], spec["message"])
        try:
            await until_heard("give jobs back", say)
        except JQError as error:
            log.warning("job %s: the release was refused: %s", job.id, error)
            if not is_last:
                message = f"{spec['message'][:REASON_CHARACTERS]} (put off for {PUT_OFF_S:g} s: {text_of(error)})"
                await self._give_back(endings.released(job, message.lstrip(), PUT_OFF_S), is_last=True)
