"""A worker's jobs out of a system: from any of its partitions. docs/partitions.md tells how it chooses."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.wake import Channel, backoff_s
from jqmaster.engine import replies
from jqmaster.engine.calls import given, new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.options import About
from jqmaster.engine.replies import Beat, Finished, Job, Note
from jqmaster.engine.scripts import Form
from jqmaster.engine.waiting import Waiting, channel_of, note_s
from jqmaster.engine.work import Outcomes
from jqmaster.errors import Invalid, JQError, Unavailable
from jqmaster.system.balance import Balancer
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import DIGITS, partition_of
from jqmaster.worker.sources import POLL_S, STOP_TIMEOUT_S, default_name
from jqmaster.worker.worker import Key, Outcome

log = logging.getLogger("jqmaster.worker")

PLACES = 8  # partitions at which one worker sleeps: a blocked connection to each
NET_S = 5.0  # how often one that sleeps looks at each of the others, of which there are few
LOOKS_S = 0.2  # with many it looks at one of them so often
LOOK_S = 1.0  # how long a partition may take to answer before the next is asked
HEAD_S = 0.1  # how long its head is waited for, while an outcome is to be reported
SLACK_MS = 2  # a partition is not left for one whose head is older by less
MISLED_S = 1.0  # how long a partition is left alone whose head promised a job that a pick did not find
AWAY_S = 5.0  # at most so long a partition that did not answer is not asked


class _Partition:
    """A partition as a worker sees it."""

    def __init__(
        self, number: int, engine: Engine, worker: str, wish: Mapping[str, Any], *, quiet_s: float | None
    ) -> None:
        """`quiet_s`: how long a look that finds nothing lasts where the worker does not sleep; None where it does."""
        self.number = number
        self.engine = engine
        self.waiting = Waiting(engine, engine.redis)
        self.name = channel_of(wish["queues"], wish["order"])
        self.channel = Channel(engine.redis, f"{engine.namespace}:wake:{self.name}") if quiet_s is None else None
        self._quiet_s = quiet_s
        self.is_called = False  # it has work, and somebody has to look
        self.quiet_until = 0.0  # nothing can start until then, or the channel says so
        self.away_until = 0.0
        self.led_until = 0.0  # its head is not followed until then
        self._failures = 0
        self._worker = worker
        self._wish = wish

    @property
    def is_away(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self._failures > 0

    def is_worth_a_look(self) -> bool:
        """Whether it may have something, as far as is known. Who does not listen there may have missed a call."""
        now = time.monotonic()
        is_quiet = now < self.quiet_until and (self.channel is None or self.channel.connected)
        return not is_quiet and self.away_until <= now

    def wish(self, count: int) -> dict[str, Any]:
        """For up to `count` jobs."""
        return {**self._wish, "count": count, "request": new_request()}

    async def look(self, count: int) -> list[Job]:
        """Jobs, if there are any that can start. A partition that does not answer has none, and is not asked for a
        while. Raises what Redis refuses."""
        self.is_called = False
        asked = {**self.wish(count), "worker": self._worker}
        try:
            async with asyncio.timeout(LOOK_S):  # what comes later is given back
                reply = await self.waiting.look(asked, self.name if self.channel else None)
        except TimeoutError:
            self.failed()
            return []
        except Unavailable as problem:
            self.waiting.abandon(asked)
            self.failed(problem)
            return []
        self._failures = 0
        next_ms, jobs = replies.picked(reply)
        if not jobs and next_ms:  # 0: there may be some at once
            self.quiet_until = time.monotonic() + (self._quiet_s or note_s(next_ms))
            if self.channel is not None:
                self.channel.look_in(next_ms)
        return self.got(jobs)

    def got(self, jobs: list[Job]) -> list[Job]:
        """Jobs of this partition: it may have more."""
        if jobs:
            self.quiet_until = 0.0
        return jobs

    def failed(self, problem: Exception | None = None) -> None:
        """It did not answer."""
        self.away_until = time.monotonic() + min(AWAY_S, backoff_s(self._failures) * 4)
        level = logging.DEBUG if self._failures else logging.INFO
        log.log(level, "%s is left out: %s", self.engine.namespace, problem or "no answer in time")
        self._failures += 1

    async def head(self) -> tuple[int, str] | None:
        """Where its best job stands, if there is one and it says so soon."""
        asking = asyncio.create_task(self.engine.head(self._wish["queues"]))
        await asyncio.wait({asking}, timeout=HEAD_S)
        if not asking.done():
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self.failed()
            return None
        try:
            found = asking.result()
        except JQError as problem:
            self.failed(problem)
            return None
        self._failures = 0
        return found


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
        self._partitions: list[_Partition] = []
        self._opening = asyncio.Lock()
        self._subscriptions: list[Subscriptions] = []
        self._announced: Engine | None = None

    def place(self, job: Job) -> int:
        """The number of its partition."""
        return partition_of(job.id)

    async def fetch(self, count: int) -> list[Job]:
        """Jobs of one partition. Raises Unavailable when none of them answers."""
        partitions = await self._open()
        deadline = time.monotonic() + POLL_S
        try:
            while True:
                for one in _worth_a_look(partitions):
                    if jobs := await one.look(count):
                        return jobs
                if all(one.is_away for one in partitions):
                    raise Unavailable(f"no partition of {self._engine.root} answers")
                if (left_s := deadline - time.monotonic()) <= 0:
                    return []
                await self._sleep(left_s)
        finally:
            for one in partitions:
                if one.is_called and one.channel is not None:  # and it is not looked at now
                    one.is_called = False
                    one.channel.pass_on()

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        partitions = await self._open()
        home = partitions[partition_of(outcomes[0].job.id)]
        self._check(outcomes, home.number)
        said = [({**one.spec, "id": one.job.id, "token": one.job.token}, one.blob, one.follow) for one in outcomes]
        if not want:
            return (await home.engine.finish(self.worker, said)).states, []
        other, before = await self._another(home)
        pick = {**home.wish(want), **given(before=before), "request": request}
        finished = await self._finish(home, said, pick)
        jobs = home.got(finished.picked.jobs if finished.picked else [])
        if other is not None and not jobs:
            with contextlib.suppress(JQError):
                jobs = await other.look(want)
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
        """Until it is cancelled: carry mail between the partitions and share limits out, as any process may."""
        await self._insist_on_opening()
        courier, balancer = Courier(self._engine, self.name), Balancer(await self._engine.partitions())
        await asyncio.gather(_again("mail is not carried", courier.run), _again("limits are not shared", balancer.run))

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None, message: str = ""
    ) -> None:
        engine = await self._of(held)
        await engine.release(self.worker, held, delay=delay or None, hold=hold or None, message=message or None)

    async def register(self, *_arguments: Any, **_more: Any) -> None:
        """Raises Invalid: jobs are pushed, and requests told, by the masters of one namespace."""
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
        await asyncio.gather(*(one.channel.stop() for one in self._partitions if one.channel is not None))
        await asyncio.gather(*(one.waiting.stop() for one in self._partitions))
        await asyncio.gather(*(one.stop() for one in self._subscriptions))
        await self._engine.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _open(self) -> list[_Partition]:
        """Raises what reading the record raises."""
        async with self._opening:
            if not self._partitions:
                engines = await self._engine.partitions()
                places = _nearest(self.name, engines)
                quiet_s = max(NET_S, LOOKS_S * (len(engines) - len(places))) * random.uniform(0.75, 1.25)
                self._partitions = [
                    _Partition(number, one, self.worker, self._wish, quiet_s=None if one in places else quiet_s)
                    for number, one in enumerate(engines)
                ]
        return self._partitions

    async def _insist_on_opening(self) -> list[_Partition]:
        failures = 0
        while True:
            try:
                return await self._open()
            except JQError:  # which who fetches is told
                await asyncio.sleep(backoff_s(failures))
                failures += 1

    async def _of(self, held: Sequence[Key]) -> Engine:
        await self._open()
        return await self._engine.of(held[0][0])

    async def _home(self) -> _Partition:
        partitions = await self._open()
        assert self._engine.record is not None
        return partitions[self._engine.record.home(self.name.encode(errors="surrogatepass"))]

    async def _finish(self, home: _Partition, said: Outcomes, pick: dict[str, Any]) -> Finished:
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

    async def _another(self, home: _Partition) -> tuple[_Partition | None, str | None]:
        """Another partition where a job waits, chosen by chance, and the place that one at home must come before."""
        now = time.monotonic()
        others = [one for one in self._partitions if one is not home and max(one.away_until, one.led_until) <= now]
        other = random.choice(others) if others else None
        head = await other.head() if other else None
        if head is None:
            return None, None
        priority, job_id = head
        return other, f"{priority + 2**31:08x}{int(job_id[:DIGITS], 16) + SLACK_MS * 1024:0{DIGITS}x}"

    async def _sleep(self, left_s: float) -> None:
        """Until a partition may have something, but at most so long."""
        now = time.monotonic()
        ends = min([now + left_s, *(max(one.quiet_until, one.away_until) for one in self._partitions)])
        sleep_s = max(0.001, ends - now)
        sleeping = {
            asyncio.create_task(one.channel.sleep(sleep_s, self.worker)): one
            for one in self._partitions
            if one.channel is not None
        }
        try:
            await asyncio.wait(sleeping, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in sleeping:
                task.cancel()
            await asyncio.wait(sleeping)
            for task, one in sleeping.items():
                if not task.cancelled() and task.result():
                    one.is_called, one.quiet_until = True, 0.0

    async def _listen(self, subscriptions: Subscriptions, namespace: str, told: Callable[[str], None]) -> None:
        async with subscriptions.listen(f"{namespace}:worker:{self.worker}") as messages:
            while True:
                message = await messages.get()
                told("" if message is None else message.decode(errors="replace"))

    def _check(self, outcomes: Sequence[Outcome], number: int) -> None:
        """What follows a job is enqueued in its partition, in the step that ends it. Raises Invalid for a unique key
        that has its home elsewhere."""
        record = self._engine.record
        assert record is not None
        for index, outcome in enumerate(outcomes):
            for position, (spec, _) in enumerate(outcome.follow):
                unique = spec.get("unique")
                if isinstance(unique, str) and record.home(unique.encode(errors="surrogatepass")) != number:
                    why = f"its key belongs to another partition than job {outcome.job.id}: enqueue it by a call"
                    raise Invalid(why, f"outcomes[{index}].enqueue[{position}].unique")


def _worth_a_look(partitions: Sequence[_Partition]) -> Iterator[_Partition]:
    """Those that may have something, as it is known when each is asked for: first those that called, last those that
    did not answer."""
    order = sorted(partitions, key=lambda one: (not one.is_called, one.is_away, random.random()))
    return (one for one in order if one.is_worth_a_look())


async def _again(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run it until it is cancelled, whatever it raises."""
    while True:
        try:
            await run()
        except JQError as problem:
            log.warning("%s, trying again: %s", what, problem)
        await asyncio.sleep(AWAY_S)


def _nearest(name: str, engines: Iterable[Engine]) -> list[Engine]:
    """By rendezvous hashing: with enough workers each partition has some."""
    return sorted(engines, key=lambda one: hashlib.sha1(f"{name} {one.namespace}".encode()).digest())[:PLACES]
