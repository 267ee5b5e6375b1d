"""Rolling restarts under load: nothing runs twice, nothing hangs, no retry is spent, no process stays.

``python tests/py/support/rolling.py [--seconds S] [--seed N] [--kinds push-thread,redis-process]``, or `make soak`,
takes a Redis, a master and workers of its own. Workers take jobs straight from Redis, pull them from the master, or
have them pushed; of each way one is told to stop every few seconds, and another takes its place. Functions are
coroutines, threads and processes. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jqmaster.engine.engine import Engine, connect
from processes import MasterProcess, Process
from rolling_check import LATE_S, Fault, Journal, Sent, faults_of, told
from rolling_jobs import FORMS, JOURNAL, WORKER, jq
from rolling_workers import Fleet, Worker, processes
from servers import RedisServer

NAMESPACE = "{rolling}"
WAYS = ("redis", "pull", "push")
KINDS = tuple(f"{way}-{form}" for way in WAYS for form in FORMS)
OPEN = ("queued", "scheduled", "retrying", "running", "blocked")
TICK_S = 0.2
LENGTHS_S = (1, 5, 20)  # of jobs, at most; half are of the first kind
LIMITED_S = 12  # and of those of which one runs at a time for each customer
BURST = 12  # short jobs that come just before a worker is told to stop: some are on their way then
EMPTY_S = 180.0  # for all jobs to end once nothing is restarted any more, and for all workers
BURST_S = 0.05
CUSTOMERS = 8
CONCURRENCY = 3  # often all is taken: who reports an outcome asks for the next job then


@dataclass(frozen=True)
class Plan:
    """`size`: workers of each way, of which one is restarted every `every_s`. `grace_s`: for its jobs, and `over_s`
    more to end. `rate`: jobs a second."""

    seconds: float = 120.0
    seed: int = 1
    kinds: Sequence[str] = KINDS
    size: int = 3
    every_s: float = 5.0
    grace_s: float = 8.0
    over_s: float = 3.0
    rate: float = 4.0


class Soak:
    """All that runs. Leaving the stack ends it."""

    def __init__(self, plan: Plan, stack: ExitStack) -> None:
        self.plan = plan
        self.jobs: list[Sent] = []
        self.stack = stack
        self._dice = random.Random(plan.seed)
        folder = Path(tempfile.mkdtemp(prefix="jq-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._path = folder / "journal"
        self._path.touch()
        self.journal = Journal(self._path)
        stack.callback(self.journal.close)
        self.redis = stack.enter_context(RedisServer())
        self.master = stack.enter_context(MasterProcess("--redis", self.redis.url, "--namespace", NAMESPACE))
        stack.enter_context(jq.using(self.redis.url, NAMESPACE))
        jq.constrain("per-customer", {"tags": "limited"}, by="argument.customer", concurrency=1)
        ways = [way for way in WAYS if any(kind.startswith(way) for kind in plan.kinds)]
        numbers = itertools.count()
        self.fleets = [
            Fleet(way, plan.size, plan.grace_s, plan.over_s, partial(self._start, way), self._dice, numbers)
            for way in ways
        ]
        for fleet in self.fleets:
            fleet.fill()

    @property
    def workers(self) -> list[Worker]:
        """All there were."""
        return [worker for fleet in self.fleets for worker in fleet.workers]

    def _start(self, way: str, number: int, name: str, port: int) -> Process:
        queues = [kind for kind in self.plan.kinds if kind.startswith(way)]
        queues += ["shared-coroutine", *(f"shared-{kind.split('-')[1]}" for kind in queues)]
        place = ("--redis", self.redis.url, "--namespace", NAMESPACE) if way == "redis" else ("--url", self.master.url)
        push = ("--push", "--push-port", str(port)) if way == "push" else ()
        started = Process(
            "jqmaster.cli", "work", "rolling_jobs:jq", *place, *push, "--queues", ",".join(sorted(set(queues))),
            "--name", name, "--concurrency", f"{CONCURRENCY}", "--stop-timeout", f"{self.plan.grace_s:g}",
            variables={JOURNAL: str(self._path), WORKER: str(number)},
        )  # fmt: skip
        self.stack.push(started)
        return started

    # -- load -------------------------------------------------------------------------------------

    def enqueue(self, kind: str, longest_s: float) -> None:
        dice, number = self._dice, len(self.jobs) + 1
        form = kind.split("-")[1]
        is_limited, fate = dice.random() < 0.25, dice.random()
        seconds = dice.uniform(0, min(longest_s, LIMITED_S) if is_limited else longest_s)
        fails = fate < 0.08
        max_retry = 0 if fate < 0.03 or (not fails and dice.random() < 0.4) else 3
        sent = Sent(
            number, "", kind if dice.random() < 0.75 else f"shared-{form}",
            customer=f"customer {dice.randrange(CUSTOMERS)}" if is_limited else "",
            follows=dice.random() < 0.1 and not fails,
            state="error" if fails and not max_retry else "done",
        )  # fmt: skip
        task = FORMS[form].options(queue=sent.queue, max_retry=max_retry, tags=["limited"] if is_limited else None)
        handle = task.enqueue(
            number, seconds, customer=sent.customer, deaf=dice.random() < 0.4, fails=int(fails), follows=sent.follows
        )
        sent.job = handle.id
        self.jobs.append(sent)

    # -- time goes by -----------------------------------------------------------------------------

    def look(self) -> None:
        now = time.monotonic()
        alive = processes({JOURNAL: str(self._path)}, WORKER)
        self.journal.look(now, alive)
        for fleet in self.fleets:
            fleet.watch(now, alive)

    def restart(self) -> None:
        """For so long as was planned."""
        begun, dice = time.monotonic(), self._dice
        restarts = sent = 0
        while (passed_s := time.monotonic() - begun) < self.plan.seconds:
            while sent < passed_s * self.plan.rate:
                self.enqueue(dice.choice(self.plan.kinds), dice.choices(LENGTHS_S, (50, 25, 25))[0])
                sent += 1
            if passed_s > (restarts + 1) * self.plan.every_s / len(self.fleets):
                self._replace(self.fleets[restarts % len(self.fleets)])
                restarts += 1
            self.look()
            time.sleep(TICK_S)

    def _replace(self, fleet: Fleet) -> None:
        """One of its workers, in the midst of short jobs."""
        kinds = [kind for kind in self.plan.kinds if kind.startswith(fleet.way)]
        weights = [1 if kind.endswith("process") else 5 for kind in kinds]  # each process takes half a second to start
        for kind in self._dice.choices(kinds, weights, k=BURST):
            self.enqueue(kind, BURST_S)
        time.sleep(self._dice.uniform(0, 0.1))
        fleet.restart()

    def finish(self) -> None:
        """Let all jobs end, then all workers."""
        self._wait(lambda: all(fleet.is_ready for fleet in self.fleets) and not self._open())
        for fleet in self.fleets:
            fleet.stop_all()
        self._wait(lambda: all(fleet.is_over for fleet in self.fleets))

    def _open(self) -> int:
        return sum(queue[state] for queue in jq.each("queues") for state in OPEN)

    def _wait(self, fact: Callable[[], bool]) -> None:
        deadline = time.monotonic() + EMPTY_S
        while not fact() and time.monotonic() < deadline:
            self.look()
            time.sleep(TICK_S)

    # -- judgement --------------------------------------------------------------------------------

    async def judge(self) -> list[Fault]:
        """All that is wrong."""
        runs: dict[str, Sent] = {one.job: one for one in self.jobs}
        told = {worker.number: worker.told for worker in self.workers if worker.told is not None}
        for run in self.journal.runs:
            run.is_late = run.seen > told.get(run.worker, math.inf) + self.plan.grace_s - LATE_S
            if run.job not in runs:
                runs[run.job] = Sent(run.number, run.job, "followers")
            runs[run.job].runs.append(run)
        self.jobs = list(runs.values())
        async with connect(self.redis.url) as redis:
            engine = Engine(redis, NAMESPACE)
            for one in self.jobs:
                [one.document] = await engine.get([one.job])
                if one.document is not None:
                    history = await engine.history(one.job)
                    one.events, one.forgotten = history["events"], history["forgotten"]
            problems = await engine.audit_all()
        faults = faults_of(self.jobs, self.workers, self.plan.grace_s)
        return faults + [Fault("audit", problem) for problem in problems]


def soak(plan: Plan) -> tuple[str, list[Fault]]:
    """What happened, and what is wrong."""
    with ExitStack() as stack:
        site = Soak(plan, stack)
        site.restart()
        site.finish()
        faults = asyncio.run(site.judge())
        calls, slowest_s = site.journal.runs, max(worker.stop_s for worker in site.workers)
        cut = sum(run.how != "whole" for run in calls)
        return (
            f"{len(site.jobs)} jobs, {len(calls)} calls, of which {cut} were cut or failed; "
            f"{len(site.workers)} workers, of which the slowest took {slowest_s:.1f} s to stop"
        ), faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="of restarts (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="of jobs and restarts (default: %(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="with commas between (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="jobs a second (default: %(default)g)")
    given = parser.parse_args()
    shown, faults = soak(Plan(given.seconds, given.seed, given.kinds.split(","), rate=given.rate))
    print(shown)
    print(f"\n{told(faults)}\n\n{len(faults)} faults" if faults else "\nNothing is wrong.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
