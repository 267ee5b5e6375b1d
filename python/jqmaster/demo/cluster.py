"""Runs the demo of a system: six partitions over three nodes of a Redis Cluster, three workers, thousands of jobs; a
node is killed, and partitions are added, while they run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jqmaster.app.app import JQ
from jqmaster.app.handle import Handle
from jqmaster.demo.nodes import Nodes
from jqmaster.demo.processes import DidNotStart, Processes, conclude, run_show
from jqmaster.errors import JQError
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add

ROOT = "{demo}"
PARTITIONS, MORE = 6, 3
WORKERS = 3
BATCH = 20
PAUSE_S = 0.02
DEADLINE_S = 55.0


async def square(number: int) -> int:
    """The job."""
    await asyncio.sleep(0.002)
    return number * number


functions = {"square": square}


class Show:
    """One run."""

    def __init__(self, jobs: int, directory: Path, processes: Processes) -> None:
        self._count = jobs  # at least
        self._has_grown = self._is_enough = False
        self._directory = directory
        self._processes = processes
        self._began = time.monotonic()
        self._sent: list[Handle[Any]] = []
        self._done: Counter[int] = Counter()  # by partition

    async def run(self) -> bool:
        """Whether everything was as it should be."""
        nodes = await asyncio.to_thread(Nodes, self._directory, self._processes)
        self._say(f"three primaries with a replica each: ports {', '.join(map(str, nodes.ports))}")
        system = await calls.create(nodes.url, ROOT, PARTITIONS)
        self._say(f"system {ROOT} of {len(system.partitions)} partitions")
        for number in range(1, WORKERS + 1):
            told = ("--redis", nodes.url, "--system", ROOT, "--concurrency", "16")
            what = ("jqmaster.cli", "work", "jqmaster.demo.cluster:functions", *told)
            await asyncio.to_thread(self._processes.start, f"worker {number}", *what, ready="is ready")
        self._say(f"{WORKERS} workers are ready")
        engine = SystemEngine(nodes.url, ROOT)
        jq = JQ(nodes.url, system=ROOT)
        sending = asyncio.create_task(self._send(jq))
        try:
            await self._reach(engine, 1000)
            await self._tell_nodes(engine)
            await self._kill_one(engine, nodes)
            record = await add(nodes.url, ROOT, MORE)
            self._say(f"added {MORE} partitions while jobs run: generation {record.generation}")
            self._has_grown = True
            await engine.changed(record.generation - 1)
            await asyncio.sleep(2)
            await self._tell_nodes(engine)
            self._is_enough = True
            await sending
            await self._reach(engine, len(self._sent))
            problems = await self._check(engine, jq)
        finally:
            sending.cancel()
            await asyncio.to_thread(jq.close)
            await engine.close()
        problems += self._processes.stop(*(f"worker {number}" for number in range(1, WORKERS + 1)))
        return self._conclude(problems)

    # -- parts ------------------------------------------------------------------------------------

    async def _send(self, jq: JQ) -> None:
        """What is acknowledged has reached a replica: it outlives its node."""
        while len(self._sent) < self._count or not self._is_enough:
            first = len(self._sent)
            batch = [jq.call("square", number, keep_result=True, durable=1) for number in range(first, first + BATCH)]
            # A token leads to the same partition however many there are: what has none goes to new ones as well.
            request = None if self._has_grown else f"demo {first}"
            while True:
                try:
                    self._sent += await jq.aenqueue_many(batch, request=request)
                    await asyncio.sleep(PAUSE_S)
                    break
                except JQError:  # again, by the same token: nothing is enqueued twice
                    await asyncio.sleep(0.1)

    async def _look(self, engine: SystemEngine) -> int:
        """How many jobs are done, as far as partitions answer."""
        for number, one in enumerate(await engine.partitions()):
            try:
                for queue in (await one.queues(["square"])).documents:
                    self._done[number] = queue["done"]
            except JQError:
                continue
        return self._done.total()

    async def _reach(self, engine: SystemEngine, count: int) -> None:
        while await self._look(engine) < count:
            if time.monotonic() - self._began > DEADLINE_S:
                raise DidNotStart(f"gave up: {self._done.total()} of {len(self._sent)} jobs are done")
            await asyncio.sleep(0.1)

    async def _owners(self, engine: SystemEngine) -> dict[str, list[int]]:
        """By node the numbers of its partitions."""
        assert engine.record is not None
        async with calls.at(engine.url, ROOT) as first:
            owners = await calls.owners_of(first)
        found: dict[str, list[int]] = {}
        for number, one in enumerate(engine.record.partitions):
            found.setdefault(owners[one.slot], []).append(number)
        return found

    async def _tell_nodes(self, engine: SystemEngine) -> None:
        """Throughput of each node for a second."""
        owners = await self._owners(engine)
        await self._look(engine)
        before, began = Counter(self._done), time.monotonic()
        await asyncio.sleep(1)
        await self._look(engine)
        took_s = time.monotonic() - began
        for node, numbers in sorted(owners.items()):
            rate = sum(self._done[number] - before[number] for number in numbers) / took_s
            total = sum(self._done[number] for number in numbers)
            which = ", ".join(map(str, numbers))
            self._say(f"node {node}: partitions {which}; {total} jobs done, {rate:.0f} a second")

    async def _kill_one(self, engine: SystemEngine, nodes: Nodes) -> None:
        owners = await self._owners(engine)
        node, numbers = sorted(owners.items())[-1]
        port = int(node.rpartition(":")[2])
        pid = nodes.kill(port)
        killed = time.monotonic()
        which = ", ".join(map(str, numbers))
        self._say(f"kill -9 {pid}: node {node} is gone, with partitions {which}")
        before = {number: self._done[number] for number in numbers}
        await self._look(engine)
        while not any(self._done[number] > before[number] for number in numbers):
            if time.monotonic() - self._began > DEADLINE_S:
                raise DidNotStart("gave up: no replica took over")
            await asyncio.sleep(0.1)
            await self._look(engine)
        self._say(f"its replica has taken over: their jobs go on after {time.monotonic() - killed:.1f} s")
        await asyncio.to_thread(nodes.start, port)
        self._say(f"node {node} is back, as a replica")

    async def _check(self, engine: SystemEngine, jq: JQ) -> list[str]:
        problems = []
        results = await jq.agather(self._sent, 10, return_errors=True)
        for number, (handle, result) in enumerate(zip(self._sent, results, strict=True)):
            if result != number * number:
                problems.append(f"job {handle.id}: expected {number * number}, got {result}")
        if len({handle.id for handle in self._sent}) != len(self._sent):
            problems.append("jobs were enqueued twice")
        there = {partition_of(handle.id) for handle in self._sent}
        missing = [number for number in range(PARTITIONS + MORE) if number not in there]
        if missing:
            problems.append(f"partitions without any job: {missing}")
        return problems + [f"audit: {problem}" for problem in await engine.audit_all()]

    def _conclude(self, problems: Sequence[str]) -> bool:
        if not problems:
            took_s = time.monotonic() - self._began
            self._say(f"all {len(self._sent)} jobs are done, with the right results; {took_s:.1f} s in all")
        return conclude(problems, "Nothing that was acknowledged was lost, though a node died and the system grew.")

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.1f} s  {text}", flush=True)


def run(jobs: int) -> int:
    """Run it with so many jobs; 0 if everything held."""
    return run_show(lambda folder, processes: Show(jobs // BATCH * BATCH, folder, processes).run())
