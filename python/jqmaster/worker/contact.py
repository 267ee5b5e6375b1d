"""What a worker tells the source of its jobs: heartbeats, and what became of the jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine.calling import new_request
from jqmaster.engine.replies import Job
from jqmaster.errors import Forbidden, JQError, NotFound, Unavailable
from jqmaster.worker import ending as endings
from jqmaster.worker.beats import Heartbeats, Key, Owner, Running, Source
from jqmaster.worker.ending import Ending, Outcome, Release
from jqmaster.worker.trouble import lasting

log = logging.getLogger("jqmaster.worker")

BATCH = 100
BATCH_BYTES = 64 << 20  # of results; a single one may have more
REPORTERS = 2


class _Reserved:
    """For how many reserved slots a report asks for jobs."""

    def __init__(self, owner: Owner, count: int = 0) -> None:
        self.count = count
        self._owner = owner

    def drop(self) -> None:
        """They are free for others."""
        self._owner.reserved -= self.count
        self.count = 0
        self._owner.make_room()


class Contact:
    """Heartbeats and reports, beside each other: one that gets no answer holds up no other."""

    def __init__(self, source: Source, owner: Owner) -> None:
        self.running: dict[Key, Running] = {}
        self.beats = Heartbeats(source, self.running, owner)
        self._source = source
        self._owner = owner
        self._endings: list[Ending] = []
        self._wanted = 0  # reserved slots whose report is not under way yet
        self._ending_came = asyncio.Event()
        self.unreported = 0
        """What is left to say of jobs that have ended."""
        self._parts: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """From now on leases are renewed, and what is to be reported is."""
        parts = [partial(lasting, "heartbeats", self.beats.run)]
        parts += [partial(lasting, "reports", self._report_loop)] * REPORTERS
        self._parts = [asyncio.create_task(part()) for part in parts]

    async def close(self) -> None:
        """End all of it, whatever is left to say."""
        await end(self._parts, 1)

    def report(self, ending: Ending, *, takes_next: bool) -> None:
        """Say it soon. With `takes_next` the report asks for the next job as well."""
        if takes_next:
            self._owner.reserved += 1
            self._wanted += 1
        self._endings.append(ending)
        self._ending_came.set()
        self.unreported += 1

    async def give_back(self, release: Release) -> list[Outcome]:
        """Release until it is heard, if need be without what cannot be. What is refused all the same becomes
        a failure, which is left to report."""
        failures = 0
        while True:
            key = release.job.held
            try:
                await self._source.release([key], delay=release.delay, hold=release.hold, message=release.message)
                return []
            except (Unavailable, Forbidden) as error:
                self._owner.trouble.met("give jobs back", error)
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            except JQError as error:
                milder = endings.put_off(release, error)
                if milder is None:
                    return [endings.failed(release.job, f"the release was refused: {error}", retry=False)]
                log.warning("job %s is put off instead: %s", release.job.id, error)
                release = milder

    # -- parts ------------------------------------------------------------------------------------

    async def _report_loop(self) -> None:
        while True:
            if not self._endings:
                self._ending_came.clear()
                await self._ending_came.wait()
            batch = self._taken()
            wish = _Reserved(self._owner, min(self._wanted, len(batch)))
            self._wanted -= wish.count
            try:
                await self._report(batch, wish)
            finally:
                self.unreported -= len(batch)
                wish.drop()

    def _taken(self) -> list[Ending]:
        # Half of the slots at most: while Redis does one half, the functions of the other run here.
        most, size, count = min(BATCH, (self._owner.concurrency + 1) // 2), 0, 0
        for ending in self._endings[:most]:
            size += len(ending.blob) if isinstance(ending, Outcome) else 0
            if count and size > BATCH_BYTES:
                break
            count += 1
        batch, self._endings = self._endings[:count], self._endings[count:]
        return batch

    async def _report(self, batch: Sequence[Ending], wish: _Reserved) -> None:
        outcomes = [ending for ending in batch if isinstance(ending, Outcome)]
        releases = [ending for ending in batch if isinstance(ending, Release)]
        if self._owner.takes_none:
            wish.drop()
        for refused in await asyncio.gather(*map(self.give_back, releases)):
            outcomes += refused
        answers, jobs = await self._insist(outcomes, wish)
        wish.drop()
        self._owner.take(jobs)
        for outcome, state in answers:
            self._owner.answered(outcome, state)

    async def _insist(self, batch: list[Outcome], wish: _Reserved) -> tuple[list[tuple[Outcome, str]], list[Job]]:
        """Report until it is heard: what was heard of each job, and the jobs that are next. Repeating is safe: outcomes
        go by their token, the jobs by the request."""
        failures, refusals, request = 0, 0, new_request()
        while batch or wish.count:
            try:
                states, jobs = await self._source.finish(batch, wish.count, request)
                self._owner.trouble.over("report outcomes")
                return list(zip(batch, states, strict=True)), jobs
            except (Unavailable, Forbidden) as error:
                self._owner.trouble.met("report outcomes", error)
            except JQError as error:
                if isinstance(error, NotFound) and not (error.path or "").startswith("outcomes"):
                    # The worker was dropped, its wish for more with it. The outcomes speak for themselves.
                    await self._source.register_again()
                    wish.drop()
                elif len(batch) > 1:
                    singly = [await self._insist([outcome], _Reserved(self._owner)) for outcome in batch]
                    return [answer for answers, _ in singly for answer in answers], []
                else:
                    if not refusals:
                        log.warning("job %s: its outcome was refused: %s", batch[0].job.id, error)
                    else:
                        self._owner.trouble.met("report outcomes", error)
                    batch = [endings.failed(batch[0].job, f"the outcome was refused: {error}", retry=False)]
                if (refusals := refusals + 1) == 1:  # what is said instead may do
                    continue
            await asyncio.sleep(backoff_s(failures := failures + 1))
        return [], []
