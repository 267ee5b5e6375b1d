"""A worker's reports: what became of its jobs, and with that the wish for the next ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from jqmaster.engine.calling import new_request
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError, NotFound
from jqmaster.worker import ending as endings
from jqmaster.worker.beats import Heartbeats
from jqmaster.worker.ending import Ending, Outcome, Release
from jqmaster.worker.slots import Running, Slots, now
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.trouble import Trouble

log = logging.getLogger("jqmaster.worker")

BATCH = 100
BATCH_BYTES = 64 << 20  # of results; a single one may have more


class Reports:
    """Several `run` beside each other, so that one that gets no answer holds up no other. `take` gets the next jobs;
    `answered` what was said to an outcome: the job's state, or in upper case why it is refused."""

    def __init__(
        self, source: EngineSource, slots: Slots, trouble: Trouble, beats: Heartbeats,
        take: Callable[[list[Job], float], None], answered: Callable[[Outcome, str], None],
    ) -> None:  # fmt: skip
        self._source = source
        self._slots = slots
        self._trouble = trouble
        self._beats = beats
        self._take = take
        self._answered = answered
        self._came = asyncio.Event()

    def add(self, ending: Ending, said: Running | None = None) -> None:
        """Report it soon. `said`: the attempt, where it has said something that must come before."""
        self._slots.ended.append((ending, said))
        self._came.set()

    async def run(self) -> None:
        """Report until cancelled."""
        slots = self._slots
        while True:
            if not slots.ended:
                self._came.clear()
                await self._came.wait()
                continue
            batch = self._batch()
            want = len(batch) if slots.is_full and slots.takes else 0
            slots.reporting += len(batch)
            slots.reserved += want
            slots.changed()
            try:
                await self._report(batch, want)
            finally:
                slots.reporting -= len(batch)
                slots.reserved -= want
                slots.changed()

    def _batch(self) -> list[tuple[Ending, Running | None]]:
        # Half of the slots at most: while Redis does one half, the functions of the other run here.
        ended, size, count = self._slots.ended, 0, 0
        for ending, _ in ended[: min(BATCH, (self._slots.most + 1) // 2)]:
            size += len(ending.blob) if isinstance(ending, Outcome) else 0
            if count and size > BATCH_BYTES:
                break
            count += 1
        batch, ended[:count] = ended[:count], []
        return batch

    async def _report(self, batch: Sequence[tuple[Ending, Running | None]], want: int) -> None:
        outcomes = [ending for ending, _ in batch if isinstance(ending, Outcome)]
        if said := [attempt for _, attempt in batch if attempt is not None]:
            is_success = len(outcomes) == len(batch) and all(outcome.is_success for outcome in outcomes)
            await self._beats.tell_rest(said, is_success=is_success)
        if len(outcomes) < len(batch):
            releases = [self._give_back(ending) for ending, _ in batch if isinstance(ending, Release)]
            outcomes += filter(None, await asyncio.gather(*releases))
        if outcomes or want:
            await self._finish(outcomes, want)

    async def _finish(self, outcomes: list[Outcome], want: int, *, is_last: bool = False) -> None:
        """Report until it is heard. Repeating is safe: outcomes go by their token, the jobs by the request. What is
        refused becomes a failure; `is_last`: it is one."""
        say, asked = partial(self._source.finish, outcomes, want, new_request()), now()
        try:
            states, jobs = await self._trouble.until_heard("report outcomes", say)
        except JQError as error:
            if isinstance(error, NotFound) and not (error.path or "").startswith("outcomes"):
                await self._source.register_again()  # the worker was dropped; the outcomes speak for themselves
            if want:
                if outcomes:
                    await self._finish(outcomes, 0)
            elif len(outcomes) > 1:
                for outcome in outcomes:
                    await self._finish([outcome], 0)
            else:
                [outcome] = outcomes
                log.warning("job %s: its outcome was refused: %s", outcome.job.id, error)
                if not is_last:  # else its lease runs out
                    failure = endings.failed(outcome.job, f"the outcome was refused: {error}", retry=False)
                    await self._finish([failure], 0, is_last=True)
        else:
            self._take(jobs, asked)
            for outcome, state in zip(outcomes, states, strict=True):
                self._answered(outcome, state)

    async def _give_back(self, release: Release, *, is_last: bool = False) -> Outcome | None:
        """Release until it is heard, if need be without what cannot be. What is refused all the same becomes a failure,
        which is left to report."""
        say = partial(
            self._source.release, [release.job.held],
            delay=release.delay, hold=release.hold, message=release.message,
        )  # fmt: skip
        try:
            await self._trouble.until_heard("give jobs back", say)
        except JQError as error:
            if is_last:
                return endings.failed(release.job, f"the release was refused: {error}", retry=False)
            log.warning("job %s: the release was refused, released with a delay instead: %s", release.job.id, error)
            return await self._give_back(endings.put_off(release, error), is_last=True)
        return None
