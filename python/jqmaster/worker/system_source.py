"""A worker's jobs out of a system: from any of its partitions. docs/partitions.md tells how it chooses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Beat, Finished, Job, Note
from jqmaster.engine.scripts import Form
from jqmaster.engine.work import Outcomes
from jqmaster.errors import Invalid, JQError, Unavailable
from jqmaster.system.courier import tend
from jqmaster.system.engine import SystemEngine
from jqmaster.system.picking import MISLED_S, Places
from jqmaster.system.place import LOOK_S, Place, Quiet
from jqmaster.system.record import partition_of
from jqmaster.worker.sources import POLL_S, EngineSource, hear, said
from jqmaster.worker.worker import Key, Outcome

log = logging.getLogger("jqmaster.worker")


class SystemSource(EngineSource):
    """Picks, renews and finishes in the partitions of a system.

    A worker that is busy picks where its last job came from, in the call that reports it, unless the head of another
    partition, chosen by chance, comes before what is there. One with room looks at each partition that may
    have something, and sleeps at up to `PLACES` of them.
    """

    has_others = True
    _engine: SystemEngine

    def __init__(
        self,
        url: str,
        root: str,
        queues: Sequence[str],
        *,
        order: str = "priority",
        name: str | None = None,
        form: Form = "auto",
    ) -> None:
        super().__init__(SystemEngine(url, root, form=form), queues, order=order, name=name)
        self._places = Places(self._engine, self.name, self._wish)
        self._quiet = Quiet()
        self._subscriptions: list[Subscriptions] = []

    def place(self, job: Job) -> int:
        """The number of its partition."""
        return partition_of(job.id)

    async def fetch(self, count: int) -> list[Job]:
        """Jobs of one partition. Raises Unavailable when none of them answers."""
        wish = {**self._wish, "count": count}
        return replies.picked(await self._places.pick(self.worker, wish, POLL_S, self._quiet)).jobs

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        places = await self._places.open()
        home = places[partition_of(outcomes[0].job.id)]
        if not want:
            return (await home.engine.finish(self.worker, said(outcomes))).states, []
        other, before = await self._places.another(home)
        finished = await self._finish(home, said(outcomes), home.wish(want, before, request))
        if finished.stale is not None:
            home.told(finished.stale)
        jobs = finished.picked.jobs if finished.picked else []
        if jobs:
            self._quiet.over(home)  # it may have more
        elif other is not None:
            with contextlib.suppress(JQError):
                reply = await other.look(self.worker, other.wish(want))
                self._quiet.note(other, reply)
                jobs = replies.picked(reply).jobs
            if not jobs:
                other.led_until = time.monotonic() + MISLED_S
        return finished.states, jobs

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        if not held:
            return Beat([], "")
        return Beat((await super().heartbeat(held, notes)).answers, "")

    async def listen(self, told: Callable[[str], None]) -> None:
        """Of the partitions at which it sleeps: heartbeats tell the rest."""
        heard = [one.engine for one in await self._insist_on_opening() if one.channel is not None]
        self._subscriptions = [Subscriptions(engine.redis) for engine in heard]
        channels = [f"{engine.namespace}:worker:{self.worker}" for engine in heard]
        await asyncio.gather(*(hear(one, at, told) for one, at in zip(self._subscriptions, channels, strict=True)))

    async def carry(self) -> None:
        """Until it is cancelled: do what keeps partitions together, and know of those that are added."""
        await self._insist_on_opening()
        await asyncio.gather(tend(self._engine, self.name), self._places.widen())

    async def register(self, *_arguments: Any, **_more: Any) -> None:
        """Raises Invalid: jobs are pushed, and requests told, by masters."""
        raise Invalid("a worker of a system is not registered: it pulls, and announces itself")

    async def stop(self) -> None:
        """Have others look where this one slept, give back what late answers bring, and close the connections."""
        await super().stop()
        await self._places.stop()
        await asyncio.gather(*(one.stop() for one in self._subscriptions))
        await self._engine.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _insist_on_opening(self) -> list[Place]:
        failures = 0
        while True:
            try:
                return await self._places.open()
            except JQError:  # which who fetches is told
                await asyncio.sleep(backoff_s(failures))
                failures += 1

    async def _engine_of(self, held: Sequence[Key]) -> Engine:
        await self._places.open()
        return await self._engine.of(held[0][0])

    async def _home(self, running: Sequence[str]) -> tuple[Engine, Sequence[str]]:
        """One partition, whichever the name says."""
        partitions = await self._places.open()
        _, record = await self._engine.known()
        home = partitions[record.home(self.name)]
        return home.engine, [one for one in running if partition_of(one) == home.number]

    async def _finish(self, home: Place, outcomes: Outcomes, pick: dict[str, Any]) -> Finished:
        """With a pick, whose slots others have jobs for when the answer takes long: what comes then is given back."""
        asking = asyncio.create_task(home.engine.finish(self.worker, outcomes, pick=pick))
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(LOOK_S):
                return await asyncio.shield(asking)
        except (TimeoutError, Unavailable) as problem:
            asking.cancel()
            home.failed()
            home.waiting.abandon({**pick, "worker": self.worker})
            raise Unavailable(f"{home.engine.namespace} did not answer", problem) from problem
