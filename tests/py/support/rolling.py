"""Rolling restarts under load, from one version to another and back: no job is lost or runs twice, none hangs, no retry
is spent, no process stays.

``python tests/py/support/rolling.py [--seconds S] [--seed N] [--rate R]``, or `make soak`, takes a Redis, masters and
workers of its own, of this version and of another. Workers take jobs straight from Redis, pull them from the masters,
or have them pushed. Every few seconds one of each way is told to stop, and another takes its place; masters as well.
Functions are coroutines, threads and processes. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jqmaster.engine.engine import Engine, connect
from parts import audit_all
from processes import Process
from rolling_jobs import FORMS, JOURNAL, WORKER, jq
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
NAMESPACE = "{rolling}"
WAYS = ("redis", "pull", "push")
OPEN = ("queued", "scheduled", "retrying", "running", "blocked")
SIZE = 3  # workers of each way
TICK_S = 0.2
LENGTHS_S = (1, 5, 20)  # of jobs, at most; half are of the first kind
BURST = 12  # short jobs that come just before a worker is told to stop: some are on their way then
GRACE_S = 8.0  # for jobs of a worker that stops
OVER_S = 8.0  # and for it to end, as the machine may be busy
LATE_S = 0.5  # before the end of the grace: what ends then may be reported too late
EMPTY_S = 180.0  # for all jobs to end once nothing is restarted any more
CONCURRENCY = 3  # often all is taken: who reports an outcome asks for the next job then
ORPHANS_S = 2.0  # what a worker has started may outlive it so long


@dataclass(slots=True)
class Run:
    """One call of a function for one attempt. `seen`: until when it was certainly at work. A call of which no end was
    written down is at work for as long as its process lives. Seconds of the monotonic clock. `is_late`: its worker was
    giving back what ran when it ended, so that its result may have come too late."""

    attempt: int
    pid: int
    worker: int
    begun: float
    seen: float
    how: str = ""  # whole, cut or raised
    is_late: bool = False


@dataclass(slots=True)
class Sent:
    """A job that was enqueued, and what is expected of it."""

    state: str = "done"
    runs: list[Run] = field(default_factory=list)

    def faults(self, document: Mapping[str, Any] | None) -> Iterator[str]:
        """What is wrong with it, given its document."""
        document = document or {"status": "gone", "retry_count": 0}
        if document["status"] != self.state:
            yield f"is {document['status']}, not {self.state}"
        if (whole := sum(run.how == "whole" and not run.is_late for run in self.runs)) > 1:
            yield f"ran whole {whole} times"
        for attempt, times in Counter(run.attempt for run in self.runs).items():
            if times > 1:
                yield f"attempt {attempt} began {times} times"
        last: Run | None = None
        for run in sorted(self.runs, key=lambda run: run.begun):
            if last is not None and run.begun < last.seen:
                yield f"attempt {run.attempt} began {last.seen - run.begun:.2f} s before {last.attempt} was over"
            last = run if last is None or run.seen > last.seen else last
        if (spent := document["retry_count"] - sum(run.how == "raised" for run in self.runs)) > 0:
            yield f"{spent} retries were spent that its function did not ask for"


@dataclass(eq=False)
class Worker:
    number: int
    way: str
    process: Process
    told: float = float("inf")  # to stop; of the monotonic clock


def another_version(folder: Path) -> Path:
    """A checkout of one: its package, its scripts and its library have other names."""
    for name in ("python", "scripts", "jqlua", "openapi"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    version = folder / "python/jqmaster/__init__.py"
    version.write_text(re.sub(r'^__version__ = ".*"', '__version__ = "0.0.9"', version.read_text(), flags=re.MULTILINE))
    for script in (folder / "scripts").glob("*.lua"):
        script.write_text(script.read_text().replace("\nreturn ", "\nlocal _ = 'other'\nreturn ", 1))
    return folder


class Soak:
    """All that runs. Leaving the stack ends it."""

    def __init__(self, stack: ExitStack, seed: int) -> None:
        self._stack, self._dice = stack, random.Random(seed)
        folder = Path(tempfile.mkdtemp(prefix="jq-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._versions = (ROOT, another_version(folder / "other"))
        self._path = folder / "journal"
        self._path.touch()
        self._journal = stack.enter_context(self._path.open("rb"))
        self._rest, self._open = b"", dict[tuple[str, int, int], Run]()
        self.jobs: dict[str, Sent] = {}
        self.workers: list[Worker] = []
        self.ends: list[Future[str]] = []
        self._stops = stack.enter_context(ThreadPoolExecutor(20))
        self.redis = stack.enter_context(RedisServer())
        stack.enter_context(jq.using(self.redis.url, NAMESPACE))
        self._masters = [self._master(number) for number in (-2, -1)]
        self._urls = [master.text.split("\n")[0].split()[-1] for master in self._masters]
        for way in WAYS * SIZE:
            self._start(way)

    def _process(self, number: int, *command: str, ready: str = "") -> Process:
        """Odd ones are of the other version; masters have numbers below 0."""
        tests = Path(__file__).parent
        path = os.pathsep.join([str(self._versions[number % 2] / "python"), str(tests)])
        variables = {JOURNAL: str(self._path), WORKER: str(number), "PYTHONPATH": path}
        return self._stack.enter_context(Process("jqmaster.cli", *command, ready=ready, variables=variables))

    def _master(self, number: int, port: str = "0") -> Process:
        where = ("--redis", self.redis.url, "--namespace", NAMESPACE)
        return self._process(number, "serve", "--port", port, *where, ready="Redis ")

    def _start(self, way: str) -> None:
        number = len(self.workers)
        where = ("--url", ",".join(self._urls)) if way != "redis" else ("--redis", self.redis.url)
        process = self._process(
            number, "work", "rolling_jobs:jq", *where, *(["--push"] if way == "push" else []),
            *(["--namespace", NAMESPACE] if way == "redis" else []),
            "--queues", f"{way}-*,shared-*", "--concurrency", f"{CONCURRENCY}", "--stop-timeout", f"{GRACE_S:g}",
        )  # fmt: skip
        self.workers.append(Worker(number, way, process))

    def enqueue(self, way: str, form: str, seconds: float) -> None:
        dice = self._dice
        fails, max_retry = dice.random() < 0.1, dice.choice((0, 3))
        task = FORMS[form].options(queue=f"{way}-{form}", max_retry=max_retry)
        job = task.enqueue(seconds, deaf=dice.random() < 0.4, fails=fails).id
        self.jobs[job] = Sent("error" if fails and not max_retry else "done")

    def restart(self, seconds: float, every_s: float, rate: float) -> None:
        """Workers of each way every `every_s`, and masters twice, while `rate` jobs come a second."""
        begun, dice = time.monotonic(), self._dice
        restarts = sent = masters = 0
        while (passed_s := time.monotonic() - begun) < seconds:
            while sent < passed_s * rate:
                longest_s = dice.choices(LENGTHS_S, (50, 25, 25))[0]
                self.enqueue(dice.choice((*WAYS, "shared")), dice.choice(list(FORMS)), dice.uniform(0, longest_s))
                sent += 1
            if passed_s > (restarts + 1) * every_s / len(WAYS):
                self._replace(WAYS[restarts % len(WAYS)])
                restarts += 1
            if passed_s > (masters + 1) * seconds / 3:
                self._replace_master(masters)
                masters += 1
            self.look()

    def _replace(self, way: str) -> None:
        """The worker of this way that works for the longest time, in the midst of short jobs."""
        for form in self._dice.choices(list(FORMS), (5, 5, 1), k=BURST):  # each process takes half a second to start
            self.enqueue(way, form, 0.05)
        time.sleep(self._dice.uniform(0, 0.1))
        ready = (one for one in self.workers if one.way == way and one.told == float("inf"))
        if old := next((one for one in ready if re.search("is ready|listens on", one.process.text)), None):
            self.stop(old, whole_group=self._dice.random() < 0.25)
            self._start(way)

    def _replace_master(self, which: int) -> None:
        """By one of the other version."""
        old = self._masters[which]
        old.signal()
        code = old.ends()
        self.ends.append(Future())
        self.ends[-1].set_result(f"master {which} ended with exit code {code}: {old.text[-1000:]}" if code else "")
        self._masters[which] = self._master(-1 - which, self._urls[which].rpartition(":")[2])

    def stop(self, worker: Worker, *, whole_group: bool = False) -> None:
        """As a service manager does it: one process is told, or all of its group."""
        if worker.process.has_ended:
            text = worker.process.text[-1000:]
            worker.process.close()
            raise RuntimeError(f"worker {worker.way} {worker.number} ended without being told to: {text}")
        worker.told = time.monotonic()
        (os.killpg if whole_group else os.kill)(worker.process.pid, signal.SIGTERM)
        self.ends.append(self._stops.submit(self._ended, worker))

    def _ended(self, worker: Worker) -> str:
        """What is wrong with its end."""
        fault, left = "", [0]
        try:
            if code := worker.process.ends(GRACE_S + OVER_S):
                fault = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            fault = f"took more than {GRACE_S + OVER_S:g} s to end"
            worker.process.kill()
        until = time.monotonic() + ORPHANS_S
        while (left := [pid for pid, number in self._alive() if number == worker.number]) and time.monotonic() < until:
            time.sleep(TICK_S)
        for pid in left:
            fault = fault or f"left {len(left)} processes behind"
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return fault and f"worker {worker.way} {worker.number} {fault}: {worker.process.text[-1000:]}"

    def _alive(self) -> Iterator[tuple[int, int]]:
        """Each process of these workers that lives, and its worker's number. A process passes its variables on to all
        that it starts, whatever group or session that makes for itself; one that is dead has none."""
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                pairs = (pair.partition(b"=") for pair in path.read_bytes().split(b"\0"))
                variables = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
                if variables.get(JOURNAL) == str(self._path):
                    yield int(path.parent.name), int(variables[WORKER])

    def look(self) -> None:
        """Take in what functions have written down by now."""
        now, alive = time.monotonic(), dict(self._alive())
        *lines, self._rest = (self._rest + self._journal.read()).split(b"\n")
        for line in map(json.loads, lines):
            key = line["job"], line["attempt"], line["pid"]
            if line["what"] == "begin":
                self._open[key] = Run(line["attempt"], line["pid"], int(line["worker"]), line["at"], line["at"])
                self.jobs[line["job"]].runs.append(self._open[key])
            elif run := self._open.pop(key, None):
                run.seen, run.how = line["at"], line["what"]
        self._open = {key: run for key, run in self._open.items() if run.pid in alive}
        for run in self._open.values():
            run.seen = max(run.seen, now)
        time.sleep(TICK_S)

    def finish(self) -> None:
        """Let all jobs end, then all workers."""
        self._wait(lambda: not sum(queue[state] for queue in jq.each("queues") for state in OPEN))
        for worker in self.workers:
            if worker.told == float("inf"):
                self.stop(worker)
        self._wait(lambda: all(ending.done() for ending in self.ends))

    def _wait(self, is_over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + EMPTY_S
        while not is_over() and time.monotonic() < deadline:
            self.look()

    async def judge(self) -> list[str]:
        """All that is wrong."""
        faults = [fault for ending in self.ends if (fault := ending.result())]
        async with connect(self.redis.url) as redis:
            engine = Engine(redis, NAMESPACE)
            faults += await audit_all(engine)
            for job, sent in self.jobs.items():
                for run in sent.runs:
                    run.is_late = run.seen > self.workers[run.worker].told + GRACE_S - LATE_S
                [document] = await engine.get([job])
                faults += [f"job {job}: {fault} {sent.runs[-16:]}" for fault in sent.faults(document)]
        return faults


def soak(seconds: float, seed: int = 1, every_s: float = 5.0, rate: float = 4.0) -> tuple[str, list[str]]:
    """What happened, and what is wrong."""
    with ExitStack() as stack:
        site = Soak(stack, seed)
        site.restart(seconds, every_s, rate)
        site.finish()
        faults = asyncio.run(site.judge())
        runs = [run.how for sent in site.jobs.values() for run in sent.runs]
        cut = len(runs) - runs.count("whole")
        return f"{len(site.jobs)} jobs, {len(runs)} calls, {cut} cut or failed; {len(site.workers)} workers", faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="of restarts (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=1, help="of jobs and restarts (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=4, help="jobs a second (default: %(default)g)")
    options = parser.parse_args()
    shown, faults = soak(options.seconds, options.seed, rate=options.rate)
    print(shown, *faults[:20], f"{len(faults)} faults" if faults else "Nothing is wrong.", sep="\n\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
