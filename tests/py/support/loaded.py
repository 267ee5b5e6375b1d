"""A site under load: masters, pushers and workers of every kind, and what is known of their jobs.

JQ_FAULT_ROUNDS=25 does everything so many times as often, for an hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis.exceptions import RedisError

import journal
from faults import BATCH, JOBS, NAMESPACE, Site, check, push
from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import audit_all, eventually
from topologies import Node

ROUNDS = int(os.environ.get("JQ_FAULT_ROUNDS", "1"))
LIMIT_S = 180 * ROUNDS
PACE_S = 0.2
OPEN = ("queued", "scheduled", "retrying", "running", "blocked")


@dataclass
class Load:
    """A site at work, and what is known of its jobs."""

    site: Site
    servers: Sequence[Node]
    sent: list[str] = field(default_factory=list)  # acknowledged, in their order
    confirmed: int = 0  # so many of them are on a replica
    doubtful: set[int] = field(default_factory=set)  # those that a killed primary may have taken along
    denied: list[str] = field(default_factory=list)  # had ended, and were said to go on
    losses: int = 0

    async def confirm(self) -> None:
        """Have what was sent so far on a replica, again and again. One that was promoted says nothing of what
        the other had."""
        async with connect(self.site.url) as redis:
            while True:
                count, before = len(self.sent), (self.losses, redis.generation)
                with contextlib.suppress(RedisError, OSError):
                    await redis.set(f"behind{NAMESPACE}", 1)
                    # By the same connection: nobody else uses this client.
                    if await redis.call("WAIT", 1, 500) and before == (self.losses, redis.generation):
                        self.confirmed = count
                await asyncio.sleep(0.05)

    @contextlib.contextmanager
    def losing(self) -> Iterator[None]:
        """What is not confirmed may be lost when a primary dies."""
        first = self.confirmed
        self.losses += 1
        yield
        self.losses += 1
        self.doubtful |= set(range(first, len(self.sent) + BATCH))  # the answer to a batch may be on its way

    async def ask(self) -> None:
        """Ask one master after the other for jobs that have ended: none may say that they go on."""
        dice, ended = random.Random(1), dict[str, None]()
        while True:
            await asyncio.sleep(0.05)
            if not self.sent:
                continue
            job = dice.choice(list(ended) if len(ended) > 50 and dice.random() < 0.5 else self.sent)
            with contextlib.suppress(Unavailable):
                try:
                    await JQ(dice.choice(self.site.urls)).handle(job).ajoin(0.2)
                    ended[job] = None
                except TimeoutError:
                    if job in ended:
                        self.denied.append(job)

    async def is_over(self) -> bool:
        """Whether no job is open any more."""
        try:
            async with connect(self.site.url) as redis:
                [document] = (await Engine(redis, NAMESPACE).queues(["flaky"])).documents
        except Unavailable:
            return False
        return not any(document[state] for state in OPEN)

    async def is_well(self) -> None:
        """All is done that was acknowledged, and was not lost as promised."""
        await eventually(self.is_over, 90)
        async with connect(self.site.url) as redis:
            engine = Engine(redis, NAMESPACE)
            documents = [
                one for at in range(0, len(self.sent), 500) for one in await engine.get(list(self.sent[at : at + 500]))
            ]
            assert await audit_all(engine) == []
        assert all(server.process is not None and server.process.poll() is None for server in self.servers)
        for process in (*self.site.masters, *self.site.workers.values()):
            assert process._process.poll() is None, process.text
        for worker in self.site.workers.values():
            worker.signal()
        for worker in self.site.workers.values():
            assert await asyncio.to_thread(worker.ends) == 0, worker.text
        assert len(self.sent) >= JOBS
        if self.losses:
            assert {number for number, one in enumerate(documents) if one is None} <= self.doubtful
            assert {one["status"] for one in documents if one is not None} == {"done"}
        else:
            assert len(set(self.sent)) == len(self.sent) and self.denied == []
            entries = [entry for path in self.site.journals for entry in journal.read(path)]
            check(documents, entries, self.site)


@asynccontextmanager
async def under_load(folder: Path, url: str, servers: Sequence[Node], pace_s: float = PACE_S) -> AsyncIterator[Load]:
    """Two masters and a worker of each kind, pushed to until this is left; then all must be well."""
    with ExitStack() as stack:
        load = Load(await asyncio.to_thread(Site, folder, stack, 1, url), servers)
        stop = asyncio.Event()
        pushing = asyncio.create_task(push(load.site, load.sent, stop, pace_s))
        others = [asyncio.create_task(load.confirm()), asyncio.create_task(load.ask())]
        try:
            await eventually(lambda: load.sent, 30)
            yield load
            stop.set()
            async with asyncio.timeout(60):
                await pushing
            await load.is_well()
        finally:
            for task in (pushing, *others):
                task.cancel()
            await asyncio.gather(pushing, *others, return_exceptions=True)


async def change(fault: Callable[[], object], pause_s: float = 0.5) -> None:
    """Work on for a moment, then this."""
    await asyncio.sleep(pause_s)
    await asyncio.to_thread(fault)
