"""Rolling restarts under load: nothing runs twice, nothing hangs, no retry is spent, no process stays.

``python tests/py/support/rolling.py [--seconds S] [--seed N] [--rate R]``, or `make soak`, takes a Redis, a master and
workers of its own. Workers take jobs straight from Redis, pull them from the master, or have them pushed; of each way
one is told to stop every few seconds, and another takes its place. Functions are coroutines, threads and processes.
Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from jqmaster.engine.engine import Engine, connect
from parts import audit_all
from processes import MasterProcess, Process
from rolling_check import LATE_S, Journal, Sent, of_job, of_limit
from rolling_jobs import FORMS, JOURNAL, WORKER, jq
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
CONCURRENCY = 3  # often all is taken: who reports an outcome asks for the next job then
ORPHANS_S = 2.0  # what a worker has started may outlive it so long
KILLED_S = 40.0  # a worker that has not ended by then is killed, or its jobs would never end


@dataclass(frozen=True)
class Plan:
    """`size`: workers of each way, of which one is restarted every `every_s`. `grace_s`: for its jobs, and `over_s`
    more to end. `rate`: jobs a second."""

    seconds: float = 120.0
    seed: int = 1
    size: int = 3
    every_s: float = 5.0
    grace_s: float = 8.0
    over_s: float = 3.0
    rate: float = 4.0


@dataclass(eq=False)
class Worker:
    """One process, and what is wrong with it. Times are of the monotonic clock."""

    way: str
    number: int
    process: Process
    told: float | None = None  # to stop
    ended: float | None = None
    fault: str = ""
    over: bool = False

    @property
    def is_ready(self) -> bool:
        return "is ready" in self.process.text or "listens on" in self.process.text

    def stop(self, whole_group: bool) -> None:
        """As a service manager does it: one process is told, or all of its group."""
        self.told = time.monotonic()
        if whole_group:
            os.killpg(self.process.pid, signal.SIGTERM)
        else:
            self.process.signal(signal.SIGTERM)

    def watch(self, now: float, alive: dict[int, int], plan: Plan) -> None:
        """`alive`: processes with the number of the worker that they came of."""
        if self.ended is None and self.process.has_ended:
            self.ended = now
            if code := self.process.ends(0):
                self.fault = f"ended with exit code {code}: {self.process.text[-1000:]}"
            elif self.told is None:
                self.fault = "ended without being told to"
        elif self.ended is None and self.told is not None and now > self.told + plan.grace_s + plan.over_s:
            self.fault = self.fault or f"took more than {now - self.told:.1f} s to end: {self.process.text[-1000:]}"
            if now > self.told + plan.grace_s + KILLED_S:
                self.process.kill()
        elif self.ended is not None:
            left = [pid for pid, number in alive.items() if number == self.number]
            if not left or now > self.ended + ORPHANS_S:
                self.fault = self.fault or (f"left {len(left)} processes behind" if left else "")
                self.over = True
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def processes(journal: Path) -> dict[int, int]:
    """Of each process of these workers that lives: its worker's number. A process passes its variables on to all that
    it starts, whatever group or session that makes for itself; one that is dead has none."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            pairs = (one.partition(b"=") for one in path.read_bytes().split(b"\0"))
            variables = {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
            if variables.get(JOURNAL) == str(journal):
                found[int(path.parent.name)] = int(variables[WORKER])
    return found


class Soak:
    """All that runs. Leaving the stack ends it."""

    def __init__(self, plan: Plan, stack: ExitStack) -> None:
        self.plan, self.stack = plan, stack
        self.jobs: list[Sent] = []
        self.workers: list[Worker] = []
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
        jq.operations.constrain("per-customer", {"tags": "limited"}, by="argument.customer", concurrency=1)
        for way in WAYS * plan.size:
            self._start(way)

    def _start(self, way: str) -> None:
        number = len(self.workers)
        queues = [queue for form in FORMS for queue in (f"{way}-{form}", f"shared-{form}")]
        place = ("--redis", self.redis.url, "--namespace", NAMESPACE) if way == "redis" else ("--url", self.master.url)
        process = Process(
            "jqmaster.cli", "work", "rolling_jobs:jq", *place, *(["--push"] if way == "push" else []),
            "--queues", ",".join(queues), "--name", f"{way}-{number}", "--concurrency", f"{CONCURRENCY}",
            "--stop-timeout", f"{self.plan.grace_s:g}", variables={JOURNAL: str(self._path), WORKER: str(number)},
        )  # fmt: skip
        self.workers.append(Worker(way, number, self.stack.enter_context(process)))

    def enqueue(self, kind: str, longest_s: float) -> None:
        dice, number = self._dice, len(self.jobs) + 1
        form = kind.split("-")[1]
        is_limited, fate = dice.random() < 0.25, dice.random()
        seconds = dice.uniform(0, min(longest_s, LIMITED_S) if is_limited else longest_s)
        fails = fate < 0.08
        max_retry = 0 if fate < 0.03 or (not fails and dice.random() < 0.4) else 3
        sent = Sent(
            number, "", kind if dice.random() < 0.75 else f"shared-{form}",
            customer=f"customer {dice.randrange(8)}" if is_limited else "",
            follows=dice.random() < 0.1 and not fails, state="error" if fails and not max_retry else "done",
        )  # fmt: skip
        task = FORMS[form].options(queue=sent.queue, max_retry=max_retry, tags=["limited"] if is_limited else None)
        handle = task.enqueue(
            number, seconds, customer=sent.customer, deaf=dice.random() < 0.4, fails=int(fails), follows=sent.follows
        )
        sent.job = handle.id
        self.jobs.append(sent)

    def restart(self) -> None:
        """For so long as was planned."""
        begun, dice = time.monotonic(), self._dice
        restarts = sent = 0
        while (passed_s := time.monotonic() - begun) < self.plan.seconds:
            while sent < passed_s * self.plan.rate:
                self.enqueue(dice.choice(KINDS), dice.choices(LENGTHS_S, (50, 25, 25))[0])
                sent += 1
            if passed_s > (restarts + 1) * self.plan.every_s / len(WAYS):
                self._replace(WAYS[restarts % len(WAYS)])
                restarts += 1
            self.look()

    def _replace(self, way: str) -> None:
        """The worker of this way that works for the longest time, in the midst of short jobs."""
        for form in self._dice.choices(list(FORMS), (5, 5, 1), k=BURST):  # each process takes half a second to start
            self.enqueue(f"{way}-{form}", 0.05)
        time.sleep(self._dice.uniform(0, 0.1))
        if old := next((one for one in self.workers if one.way == way and one.told is None and one.is_ready), None):
            old.stop(whole_group=self._dice.random() < 0.25)
            self._start(way)

    def finish(self) -> None:
        """Let all jobs end, then all workers."""
        self._wait(lambda: not sum(queue[state] for queue in jq.each("queues") for state in OPEN))
        for worker in self.workers:
            if worker.told is None and not worker.process.has_ended:
                worker.stop(whole_group=False)
        self._wait(lambda: all(worker.over for worker in self.workers))

    def _wait(self, fact: Callable[[], bool]) -> None:
        deadline = time.monotonic() + EMPTY_S
        while not fact() and time.monotonic() < deadline:
            self.look()

    def look(self) -> None:
        now, alive = time.monotonic(), processes(self._path)
        self.journal.look(now, alive)
        for worker in self.workers:
            if not worker.over:
                worker.watch(now, alive, self.plan)
        time.sleep(TICK_S)

    async def judge(self) -> list[str]:
        """All that is wrong."""
        jobs: dict[str, Sent] = {one.job: one for one in self.jobs}
        told = {worker.number: worker.told or math.inf for worker in self.workers}
        for run in self.journal.runs:
            run.is_late = run.seen > told[run.worker] + self.plan.grace_s - LATE_S
            jobs.setdefault(run.job, Sent(run.number, run.job, "followers")).runs.append(run)
        async with connect(self.redis.url) as redis:
            engine = Engine(redis, NAMESPACE)
            for job in jobs.values():
                [job.document] = await engine.get([job.job])
            faults = await audit_all(engine)
        faults += [
            f"job {job.number} ({job.queue}): {said}{job.story}" for job in jobs.values() for said in of_job(job)
        ]
        faults += [f"job {job.number} ({job.queue}): {said}{job.story}" for job, said in of_limit(jobs.values())]
        followers = sorted(-job.number for job in jobs.values() if job.number < 0)
        if followers != sorted(job.number for job in jobs.values() if job.follows):
            faults.append(f"followers are not those that were sent, each once: {followers}")
        return faults + [f"worker {one.way} {one.number}: {one.fault}" for one in self.workers if one.fault]


def soak(plan: Plan) -> tuple[str, list[str]]:
    """What happened, and what is wrong."""
    with ExitStack() as stack:
        site = Soak(plan, stack)
        site.restart()
        site.finish()
        faults = asyncio.run(site.judge())
        calls = site.journal.runs
        cut = sum(run.how != "whole" for run in calls)
        return (
            f"{len(site.jobs)} jobs, {len(calls)} calls, of which {cut} were cut or failed; {len(site.workers)} workers"
        ), faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="of restarts (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="of jobs and restarts (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="jobs a second (default: %(default)g)")
    options = parser.parse_args()
    shown, faults = soak(Plan(options.seconds, options.seed, rate=options.rate))
    print(shown, *faults[:20], f"{len(faults)} faults" if faults else "Nothing is wrong.", sep="\n\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
