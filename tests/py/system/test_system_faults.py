"""What workers of a system note, and what its partitions tell, of each start and end of jobs of all kinds, while
workers are killed and stopped, slots move, primaries are stopped and die: held against what is promised.

A primary dies when its replica has all that it has: what a failover may lose is another matter. JQ_FAULT_ROUNDS=25 does
everything so many times as often, JQ_FAULT_SEED chooses another order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgpack
import pytest

from faults import folder  # noqa: F401
from jqmaster.demo import journal
from jqmaster.engine.durable import Durable
from jqmaster.errors import JQError
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from parts import eventually
from processes import Process
from topologies import Cluster, Node, cluster, until

pytestmark = pytest.mark.faults

ROUNDS = int(os.environ.get("JQ_FAULT_ROUNDS", "1"))
SEED = int(os.environ.get("JQ_FAULT_SEED", "1"))
ROOT, COUNT, LIMIT, WORKERS = "{log}", 6, 5, 3
LEASE_S = 4
OPEN = ("queued", "scheduled", "retrying", "running", "blocked")


@dataclass
class Site:
    """Workers as processes, who enqueues, and what was acknowledged."""

    nodes: Cluster
    folder: Path
    stack: ExitStack
    engine: SystemEngine
    dice: random.Random
    workers: list[Process] = field(default_factory=list)
    journals: list[Path] = field(default_factory=list)
    made: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # ids by name
    children: dict[str, list[str]] = field(default_factory=dict)
    losses: int = 0  # workers that could not write down all that they did

    def start_worker(self) -> None:
        path = self.folder / f"{len(self.journals)}.journal"
        self.journals.append(path)
        command = ("system_worker", self.nodes.url, ROOT, str(path))
        self.workers.append(self.stack.enter_context(Process(*command, ready="worker ")))

    async def enqueue(self, request: str, name: str, number: int, **spec: Any) -> str:
        """One job, again under its token until a replica has it."""
        argument = msgpack.packb({"number": number, "ms": number * 7 % 60})
        told = {"name": name, "timeout": LEASE_S, "max_lapses": 20, **spec}
        while True:
            with contextlib.suppress(JQError):
                [one] = await self.engine.enqueue([(told, argument)], request=request, durable=Durable())
                self.made[name].append(one.id)
                return one.id
            await asyncio.sleep(0.1)

    async def push(self, who: int, stop: asyncio.Event) -> None:
        """Jobs of each kind, in turn, a turn every few milliseconds."""
        number = 0
        while not stop.is_set():
            number += 1
            token = f"{who} {number}"
            parents = [await self.enqueue(f"{token} {turn}", "plain", number) for turn in range(2)]
            child = await self.enqueue(f"{token} child", "child", number, depends=parents)
            self.children[child] = parents
            await self.enqueue(f"{token} limited", "limited", number)
            await self.enqueue(f"{token} unique", "plain", number, unique=f"key {number % 5}")
            await asyncio.sleep(0.05)

    # -- faults -----------------------------------------------------------------------------------

    def primary(self) -> Node:
        """Of a partition by chance."""
        names = [one.namespace for one in self.engine.record.partitions] if self.engine.record else []
        return self.nodes.owner(self.dice.choice(names))

    def kill_worker(self) -> None:
        """kill -9, and a new one."""
        self.workers.pop(self.dice.randrange(len(self.workers))).kill()
        self.losses += 1
        self.start_worker()

    def stop_worker(self) -> None:
        """For longer than its leases last."""
        worker = self.dice.choice(self.workers)
        worker.signal(signal.SIGSTOP)
        time.sleep(LEASE_S + 2)
        worker.signal(signal.SIGCONT)
        self.losses += 1

    def stop_primary(self) -> None:
        """For less than what makes the cluster choose another."""
        process = self.primary().process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.7)
        process.send_signal(signal.SIGCONT)

    def kill_primary(self) -> None:
        """Once its replica has all that it has; it comes back as the replica of that one."""
        primary = self.primary()
        replica = self.nodes.replica_of(primary)
        primary.do("CLIENT", "PAUSE", 3000, "WRITE")
        offset = primary.offset()
        until(lambda: replica.offset() >= offset)
        primary.kill()
        until(replica.is_primary)
        primary.start()
        until(primary.has_caught_up)

    def move_slot(self) -> None:
        """To another node, key by key, with a pause at each stage."""
        assert self.engine.record is not None
        name = self.dice.choice(self.engine.record.partitions).namespace
        owner = self.nodes.owner(name)
        others = [one for one in self.nodes.servers if one is not owner and one.is_primary()]
        self.nodes.move(name, self.dice.choice(others), 0.1)

    # -- what must hold ---------------------------------------------------------------------------

    async def is_over(self) -> bool:
        with contextlib.suppress(JQError):
            documents = (await self.engine.queues()).documents
            return not any(one[state] for one in documents for state in OPEN)
        return False

    async def check(self) -> None:
        ids = sorted({one for made in self.made.values() for one in made})
        found = {one: document for one in ids for document in await self.engine.get(one)}
        assert [one for one, document in found.items() if document is None or document["status"] != "done"] == []
        assert {partition_of(one) for one in ids} == set(range(COUNT))
        self._ended_as_told()
        told = {one: (await self.engine.history(one))["events"] for one in ids}
        assert most_at_once([told[one] for one in set(self.made["limited"])]) <= LIMIT
        for child, parents in self.children.items():
            assert _first(told[child], "started") >= max(_first(told[one], "done") for one in parents)
        assert any(partition_of(child) != partition_of(one) for child, ones in self.children.items() for one in ones)
        assert any(event["event"] == "lapsed" for events in told.values() for event in events)
        by_key = defaultdict(list)
        for one, document in found.items():
            if document is not None and "unique" in document:
                by_key[document["unique"]].append((_first(told[one], "enqueued"), _first(told[one], "done")))
        assert len(by_key) == 5
        for spans in by_key.values():
            assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
        await self._one_job_for_a_moment()
        assert await self.engine.audit_all() == []

    def _ended_as_told(self) -> None:
        """No attempt was accepted twice, and no job was done twice."""
        entries = [entry for path in self.journals for entry in journal.read(path, journal.Entry)]
        assert max(Counter((one.job, one.attempt) for one in entries).values()) == 1
        done = Counter(one.job for one in entries if one.state == "done")
        assert max(done.values()) == 1
        missing = {one for made in self.made.values() for one in made} - set(done)
        assert len(missing) <= 6 * self.losses, missing

    async def _one_job_for_a_moment(self) -> None:
        moments: list[tuple[str, int]] = []
        for one in await self.engine.partitions():
            cursor = None
            while cursor != "":
                page = await one.jobs({"name": "tick"}, count=100, cursor=cursor)
                moments += [(document["schedule"], document["schedule_ms"]) for document in page.documents]
                cursor = page.cursor or ""
        assert len(moments) > 5 and len(set(moments)) == len(moments)


def _first(events: list[dict[str, Any]], what: str) -> int:
    return next(int(one["time_ms"]) for one in events if one["event"] == what)


def most_at_once(histories: list[list[dict[str, Any]]]) -> int:
    """How many ran at one moment, at most, as the partitions tell starts and ends."""
    steps = []
    for events in histories:
        runs = False
        for one in events:
            if one["event"] == "started":
                assert not runs
                steps.append((one["time_ms"], 1))
            elif runs:
                steps.append((one["time_ms"], -1))
            runs = one["event"] == "started"
    running = most = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most


@pytest.fixture
async def site(folder: Path) -> AsyncIterator[Site]:
    with cluster(3, replicas=1) as nodes, ExitStack() as stack:
        await calls.create(nodes.url, ROOT, COUNT)
        engine = SystemEngine(nodes.url, ROOT)
        yield Site(nodes, folder, stack, engine, random.Random(SEED))
        await engine.close()


@pytest.mark.timeout(180 * ROUNDS)
async def test_a_log_of_all_starts_and_ends(site: Site) -> None:
    await site.engine.partitions()
    await site.engine.constrain("few", {"name": "limited"}, concurrency=LIMIT)
    for number in range(3):
        await site.engine.schedule(f"tick {number}", {"name": "tick"}, msgpack.packb({"ms": 1}), every=1)
    for _ in range(WORKERS):
        await asyncio.to_thread(site.start_worker)
    stop = asyncio.Event()
    pushing = [asyncio.create_task(site.push(who, stop)) for who in range(2)]
    for _ in range(ROUNDS):
        faults = [site.kill_worker, site.stop_worker, site.stop_primary, site.kill_primary, site.move_slot]
        site.dice.shuffle(faults)
        for fault in faults:
            await asyncio.sleep(1)
            await asyncio.to_thread(fault)
    stop.set()
    async with asyncio.timeout(60):
        await asyncio.gather(*pushing)
    for number in range(3):
        await site.engine.unschedule(f"tick {number}")
    await eventually(site.is_over, 90)
    for worker in site.workers:
        worker.signal()
    for worker in site.workers:
        assert await asyncio.to_thread(worker.ends) == 0, worker.text
    await site.check()
