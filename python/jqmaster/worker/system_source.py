"""A worker's jobs out of a system: from any of its partitions. docs/partitions.md tells how it chooses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.engine.options import About
from jqmaster.engine.replies import Beat, Finished, Job, Note
from jqmaster.engine.scripts import Form
from jqmaster.engine.work import Outcomes
from jqmaster.errors import Invalid, JQError, Unavailable
from jqmaster.system.courier import tend
from jqmaster.system.engine import SystemEngine
from jqmaster.system.picking import MISLED_S, Places
from jqmaster.system.place import LOOK_S, Place, Quiet
from jqmaster.system.record import partition_of
from jqmaster.worker.sources import POLL_S, STOP_TIMEOUT_S, default_name
from jqmaster.worker.worker import Key, Outcome

log = logging.getLogger("jqmaster.worker")


class SystemSource:
    """Picks, renews and finishes in the partitions of a system.

    A worker that is busy picks where its last job came from, in the call that reports it, unless the head of another
    partition, chosen by chance, comes before what is there. One with room looks at each partition that may
    have something, and sleeps at up to `PLACES` of them.
    """

    has_others = True

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
        self.name = self.worker = name or default_name()
        self.is_registered = False
        self._engine = SystemEngine(url, root, form=form)
        self._wish: dict[str, Any] = {"queues": list(queues), "order": order}
        self._places = Places(self._engine, self.name, self._wish)
        self._quiet = Quiet()
        self._subscriptions: list[Subscriptions] = []
        self._announced: Engine | None = None

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
        said = [({**one.spec, "id": one.job.id, "token": one.job.token}, one.blob, one.follow) for one in outcomes]
        if not want:
            return (await home.engine.finish(self.worker, said)).states, []
        other, before = await self._places.another(home)
        finished = await self._finish(home, said, home.wish(want, before, request))
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
        return Beat((await (await self._of(held)).beat(self.worker, held, notes=notes)).answers, "")

    async def listen(self, told: Callable[[str], None]) -> None:
        """Of the partitions at which it sleeps: heartbeats tell the rest."""
        heard = [one.engine for one in await self._insist_on_opening() if one.channel is not None]
        self._subscriptions = [Subscriptions(engine.redis) for engine in heard]
        pairs = zip(self._subscriptions, heard, strict=True)
        await asyncio.gather(*(self._listen(one, engine.namespace, told) for one, engine in pairs))

    async def carry(self) -> None:
        """Until it is cancelled: do what keeps partitions together, and know of those that are added."""
        await self._insist_on_opening()
        await asyncio.gather(tend(self._engine, self.name), self._places.widen())

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None, message: str = ""
    ) -> None:
        engine = await self._of(held)
        await engine.release(self.worker, held, delay=delay or None, hold=hold or None, message=message or None)

    async def register(self, *_arguments: Any, **_more: Any) -> None:
        """Raises Invalid: jobs are pushed, and requests told, by masters."""
        raise Invalid("a worker of a system is not registered: it pulls, and announces itself")

    async def announce(self, max_jobs: int, running: Sequence[str], **about: Unpack[About]) -> None:
        """Be listed for some minutes at one partition, with the jobs that run of it."""
        home = await self._home()
        self._announced = home.engine  # it may be so although the answer never comes
        ours = [one for one in running if partition_of(one) == home.number]
        await home.engine.register(
            self.name, self._wish["queues"], max_jobs=max_jobs, announce=True, running=ours, **about
        )

    async def register_again(self) -> bool:
        return True

    async def stop(self) -> None:
        """Have others look where this one slept, give back what late answers bring, and close the connections."""
        with contextlib.suppress(JQError, TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                if self._announced is not None:
                    await self._announced.unregister(self.name)
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

    async def _of(self, held: Sequence[Key]) -> Engine:
        await self._places.open()
        return await self._engine.of(held[0][0])

    async def _home(self) -> Place:
        partitions = await self._places.open()
        _, record = await self._engine.known()
        return partitions[record.home(self.name)]

    async def _finish(self, home: Place, said: Outcomes, pick: dict[str, Any]) -> Finished:
        """With a pick, whose slots others have jobs for when the answer takes long: what comes then is given back."""
        asking = asyncio.create_task(home.engine.finish(self.worker, said, pick=pick))
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(LOOK_S):
                return await asyncio.shield(asking)
        except (TimeoutError, Unavailable) as problem:
            asking.cancel()
            home.failed()
            home.waiting.abandon({**pick, "worker": self.worker})
            raise Unavailable(f"{home.engine.namespace} did not answer", problem) from problem

    async def _listen(self, subscriptions: Subscriptions, namespace: str, told: Callable[[str], None]) -> None:
        async with subscriptions.listen(f"{namespace}:worker:{self.worker}") as messages:
            while True:
                message = await messages.get()
                told("" if message is None else message.decode(errors="replace"))
