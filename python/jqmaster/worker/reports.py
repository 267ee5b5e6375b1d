"""A worker's reports: what became of its jobs, and with that the wish for the next ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.calling import new_request
from jqmaster.engine.replies import Job
from jqmaster.errors import Forbidden, JQError, NotFound, Unavailable
from jqmaster.worker import ending as endings
from jqmaster.worker.ending import Ending, Outcome, Release
from jqmaster.worker.slots import Slots
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.trouble import Trouble

log = logging.getLogger("jqmaster.worker")

BATCH = 100
BATCH_BYTES = 64 << 20  # of results; a single one may have more

Answer = tuple[Outcome, str]
"""What was said to an outcome: the job's state, or in upper case why it is refused."""


class Reports:
    """Several `run` beside each other, so that one that gets no answer holds up no other. `take` gets the next jobs."""

    def __init__(
        self, source: EngineSource, slots: Slots, trouble: Trouble,
        take: Callable[[list[Job]], None], answered: Callable[[Outcome, str], None],
    ) -> None:  # fmt: skip
        self._source = source
        self._slots = slots
        self._trouble = trouble
        self._take = take
        self._answered = answered
        self._endings: list[Ending] = []
        self._wanted = 0  # reserved slots whose report is not under way yet
        self._came = asyncio.Event()

    def add(self, ending: Ending, *, takes_next: bool = False) -> None:
        """Report it soon. With `takes_next` the report asks for the next job as well."""
        if takes_next:
            self._slots.reserved += 1
            self._wanted += 1
        self._slots.unreported += 1
        self._endings.append(ending)
        self._came.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            if not self._endings:
                self._came.clear()
                await self._came.wait()
            batch = self._batch()
            reserved = min(self._wanted, len(batch))
            self._wanted -= reserved
            try:
                await self._report(batch, 0 if self._slots.takes_none else reserved)
            finally:
                self._slots.unreported -= len(batch)
                self._slots.reserved -= reserved
                self._slots.changed()

    def _batch(self) -> list[Ending]:
        # Half of the slots at most: while Redis does one half, the functions of the other run here.
        most, size, count = min(BATCH, (self._slots.most + 1) // 2), 0, 0
        for ending in self._endings[:most]:
            size += len(ending.blob) if isinstance(ending, Outcome) else 0
            if count and size > BATCH_BYTES:
                break
            count += 1
        batch, self._endings = self._endings[:count], self._endings[count:]
        return batch

    async def _report(self, batch: Sequence[Ending], want: int) -> None:
        outcomes = [ending for ending in batch if isinstance(ending, Outcome)]
        releases = [ending for ending in batch if isinstance(ending, Release)]
        outcomes += filter(None, await asyncio.gather(*map(self._give_back, releases)) if releases else ())
        answers, jobs = await self._insist(outcomes, want)
        self._take(jobs)
        for outcome, state in answers:
            self._answered(outcome, state)

    async def _insist(self, batch: list[Outcome], want: int) -> tuple[list[Answer], list[Job]]:
        """Report until it is heard; the answers, and the jobs that are next. Repeating is safe: outcomes go by their
        token, the jobs by the request."""
        failures, refusals, request = 0, 0, new_request()
        while batch or want:
            try:
                states, jobs = await self._source.finish(batch, want, request)
                self._trouble.over("report outcomes")
                return list(zip(batch, states, strict=True)), jobs
            except (Unavailable, Forbidden) as error:
                self._trouble.met("report outcomes", error)
            except JQError as error:
                if isinstance(error, NotFound) and not (error.path or "").startswith("outcomes"):
                    # The worker was dropped, its wish for more with it. The outcomes speak for themselves.
                    await self._source.register_again()
                    want = 0
                elif len(batch) > 1:
                    singly = [await self._insist([outcome], 0) for outcome in batch]
                    return [answer for answers, _ in singly for answer in answers], []
                else:
                    if not refusals:
                        log.warning("job %s: its outcome was refused: %s", batch[0].job.id, error)
                    else:
                        self._trouble.met("report outcomes", error)
                    batch = [endings.failed(batch[0].job, f"the outcome was refused: {error}", retry=False)]
                if (refusals := refusals + 1) == 1:  # what is said instead may do
                    continue
            await asyncio.sleep(backoff_s(failures))
            failures += 1
        return [], []

    async def _give_back(self, release: Release) -> Outcome | None:
        """Release until it is heard, if need be without what cannot be. What is refused all the same becomes a failure,
        which is left to report."""
        failures, refusals = 0, 0
        while True:
            key = release.job.held
            try:
                await self._source.release([key], delay=release.delay, hold=release.hold, message=release.message)
                return None
            except (Unavailable, Forbidden) as error:
                self._trouble.met("give jobs back", error)
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            except JQError as error:
                if refusals:
                    return endings.failed(release.job, f"the release was refused: {error}", retry=False)
                refusals += 1
                log.warning("job %s: the release was refused, released with a delay instead: %s", release.job.id, error)
                release = endings.put_off(release, error)
