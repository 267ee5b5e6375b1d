"""Runs the demo: a master with a Redis of its own, three workers, thousands of jobs, two limits, one worker
killed."""

from __future__ import annotations

import argparse
import asyncio
import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jqmaster.client.app import JQ
from jqmaster.demo import check, journal, limits
from jqmaster.demo.plan import FLOODING, Sent, make_plan
from jqmaster.demo.processes import Processes, conclude, run_show
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import FORMS, Form

DEADLINE_S = 55.0
BATCH = 100
SINGLES_IN = 5  # every fifth job goes in a request of its own
LOOK_EVERY_S = 0.25
PLAIN_EVERY_S = 2.0
STATES = ("queued", "scheduled", "running", "retrying", "done", "error", "cancelled")
ENDED = ("done", "error", "cancelled")
KILLED = "push-2"
WORKERS = ("push-1", KILLED, "pull-1")


class Progress:
    """One line that is rewritten on a terminal, a line now and then otherwise."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._began = time.monotonic()
        self._last = 0.0

    def show(self, sent: int, flood: tuple[int, int], counts: Counter[str]) -> None:
        """`flood`: how many reports of the flooding customer run, and how many are held."""
        running, held = flood
        parts = [f"{self.elapsed_s:5.1f} s", f"sent {sent}", f"{FLOODING}: {running} running, {held} held"]
        text = "  ".join(parts + [f"{name} {counts[name]}" for name in STATES])
        if self._terminal:
            # What is wider than the terminal would be left standing when the line is rewritten.
            print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif time.monotonic() - self._last >= PLAIN_EVERY_S:
            self._last = time.monotonic()
            print(text, flush=True)

    def say(self, text: str) -> None:
        print(("\r\x1b[K" if self._terminal else "") + f"{self.elapsed_s:5.1f} s  {text}", flush=True)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began


class Show:
    """One run of the demo."""

    def __init__(self, jobs: int, form: Form, directory: Path, processes: Processes) -> None:
        self._plan = make_plan(jobs)
        self._form = form
        self._directory = directory
        self._processes = processes
        self._progress = Progress()
        self._counts: Counter[str] = Counter()
        self._sent = 0
        self._killed_at_s = math.inf
        self._url = ""

    async def run(self) -> bool:
        """Whether everything was as it should be."""
        redis_url = self._start_processes()
        client = JQ(self._url, keep_result=False)
        async with connect(redis_url) as redis:
            engine = Engine(redis, form=self._form)
            self._progress.say(await limits.set_limits(client, self._plan))
            sending = asyncio.create_task(self._send(client))
            try:
                await self._watch(client, sending)
                await sending
            finally:
                sending.cancel()
            documents = await self._documents(engine)
            results = await self._results(client)
            problems = self._processes.stop("push-1", "pull-1")
            problems += [f"audit: {problem}" for problem in await engine.audit_all()]
        problems += self._processes.stop("master")
        outcomes = {name: journal.read(self._journal(name), journal.Entry) for name in WORKERS}
        moments = {name: journal.read(self._journal(name), journal.Moment) for name in WORKERS}
        verdict = check.check(self._plan, documents, results, outcomes, KILLED)
        found = limits.check_limits(self._plan, documents, moments, KILLED, self._killed_at_s)
        verdict.problems += found.problems + problems
        return self._conclude(verdict, outcomes, found.lines)

    def _journal(self, worker: str) -> Path:
        return self._directory / f"{worker}.journal"

    def _start_processes(self) -> str:
        start = self._processes.start
        data = str(self._directory / "redis")
        options = ("--port", "0", "--data-dir", data, "--form", self._form)
        line = start("master", "jqmaster.cli", "serve", *options, ready="Redis ")
        redis_url = line.split()[1]
        heading = (self._directory / "master.log").read_text().split("\n")[0]
        self._url = heading.split()[-1]
        self._progress.say(heading)
        for name in WORKERS:
            path = str(self._journal(name))
            how = name.partition("-")[0]
            start(name, "jqmaster.demo.worker", self._url, name, path, how, ready="worker ")
        self._progress.say("two push workers and one pull worker are ready")
        return redis_url

    async def _send(self, client: JQ) -> None:
        for batch in _batches([sent for sent in self._plan if sent.at_once]):
            await self._send_batch(client, batch)
        rest = [sent for sent in self._plan if not sent.at_once]
        singles = rest[::SINGLES_IN]
        batches = _batches([sent for index, sent in enumerate(rest) if index % SINGLES_IN])
        while singles or batches:
            if batches:
                await self._send_batch(client, batches.pop())
            few, singles = singles[:25], singles[25:]
            jobs = await asyncio.gather(*(client.aenqueue(**sent.spec) for sent in few))
            for sent, job in zip(few, jobs, strict=True):
                await self._was_sent(client, sent, job.id)

    async def _send_batch(self, client: JQ, batch: Sequence[Sent]) -> None:
        jobs = await client.aenqueue_many(client.call(**sent.spec) for sent in batch)
        for sent, job in zip(batch, jobs, strict=True):
            await self._was_sent(client, sent, job.id)

    async def _was_sent(self, client: JQ, sent: Sent, job_id: str) -> None:
        sent.id = job_id
        self._sent += 1
        if sent.ends == "cancelled":
            await client.acancel(job_id)

    async def _watch(self, client: JQ, sending: asyncio.Task[None]) -> None:
        explained = ""
        while True:
            flood = await limits.flood_use(client)
            if flood[1] and not explained:
                explained = await limits.why_it_waits(client, self._plan)
                self._progress.say(explained)
            self._counts = Counter()
            for queue in await client.aqueues():
                self._counts.update({state: queue[state] for state in STATES})
            self._progress.show(self._sent, flood, self._counts)
            ended = sum(self._counts[state] for state in ENDED)
            if self._killed_at_s == math.inf and ended > len(self._plan) * 0.3:
                self._killed_at_s = time.monotonic()
                pid = self._processes.kill(KILLED)
                self._progress.say(f"kill -9 {pid}: worker {KILLED} is gone, with all it was working on")
            if sending.done() and (sending.exception() or ended >= len(self._plan)):
                self._progress.say(f"{ended} of {len(self._plan)} jobs have ended")
                return
            if self._progress.elapsed_s > DEADLINE_S:
                self._progress.say(f"gave up: {ended} of {len(self._plan)} jobs have ended")
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _documents(self, engine: Engine) -> dict[str, dict[str, Any] | None]:
        """Every job's document, straight from Redis: the second way in, beside HTTP."""
        names = {worker["id"]: worker["name"] for worker in (await engine.workers()).documents}
        ids = [sent.id for sent in self._plan if sent.id]
        documents: dict[str, dict[str, Any] | None] = {}
        for at in range(0, len(ids), 500):
            found = await engine.get(*ids[at : at + 500])
            documents |= dict(zip(ids[at : at + 500], found, strict=True))
        for document in documents.values():
            if document is not None:
                holder = document.get("worker_id", "")
                # The killed worker is dropped from the list in the end; only its id is missing from it.
                known = names.get(holder, KILLED if holder.startswith("w") else holder)
                document["holder"] = known
        return documents

    async def _results(self, client: JQ) -> dict[str, Any]:
        wanted = [sent.id for sent in self._plan if sent.keeps_result and sent.id]
        jobs = [client.handle(job_id) for job_id in wanted]
        return dict(zip(wanted, await client.agather(jobs, 10, return_errors=True), strict=True))

    def _conclude(self, verdict: check.Verdict, outcomes: dict[str, list[journal.Entry]], lines: Sequence[str]) -> bool:
        print("\n" + check.table(verdict))
        finished = ", ".join(
            f"{name} {sum(entry.state in check.FINAL for entry in entries)}" for name, entries in outcomes.items()
        )
        print(f"\nfinished by {finished}; {self._progress.elapsed_s:.1f} s in all")
        print(*lines, sep="\n")
        return conclude(verdict.problems, "Nothing was lost, nothing was finished twice, every result is right.")


def _batches(sent: Sequence[Sent]) -> list[Sequence[Sent]]:
    return [sent[at : at + BATCH] for at in range(0, len(sent), BATCH)]


def run(jobs: int = 3000, form: Form = "auto") -> int:
    """Run the demo with about so many jobs; 0 if everything held."""
    return run_show(lambda folder, processes: Show(jobs, form, folder, processes).run())


def main(arguments: Sequence[str] | None = None) -> int:
    """The same from a command line."""
    parser = argparse.ArgumentParser(prog="python -m jqmaster.demo", description=__doc__)
    parser.add_argument("--jobs", type=int, default=3000, help="about how many jobs (default: %(default)s)")
    parser.add_argument("--form", choices=FORMS, default="auto", help="as that of `jqmaster serve`")
    options = parser.parse_args(arguments)
    return run(options.jobs, options.form)
