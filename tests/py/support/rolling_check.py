"""What must hold of jobs and workers after rolling restarts (rolling.py), and the table of what did."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolling_workers import Worker

ENDS = ("done", "failed", "lapsed", "released", "moved", "blocked", "cancelled")


@dataclass(slots=True)
class Run:
    """One call of a function for one attempt. `seen`: until when it was certainly at work. A call of which no end was
    written down is at work for as long as its process lives. Seconds of the monotonic clock."""

    number: int
    job: str
    attempt: int
    pid: int
    begun: float
    seen: float
    how: str = ""  # whole, cut or raised


class Journal:
    """The calls, as far as they are written down by now."""

    def __init__(self, path: Path) -> None:
        self.runs: list[Run] = []
        self._file = path.open("rb")
        self._rest = b""
        self._open: dict[tuple[str, int, int], Run] = {}

    def look(self, now: float, alive: Mapping[int, int]) -> None:
        """Take in what came. `alive`: processes that lived at `now`, or later."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for said in map(json.loads, lines):
            key = said["job"], said["attempt"], said["pid"]
            if said["what"] == "begin":
                self._open[key] = Run(said["number"], *key, said["at"], said["at"])
                self.runs.append(self._open[key])
            else:
                run = self._open.pop(key)
                run.seen, run.how = said["at"], said["what"]
        self._open = {key: run for key, run in self._open.items() if run.pid in alive}
        for run in self._open.values():
            run.seen = max(run.seen, now)

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class Sent:
    """A job that was enqueued, and what is expected of it. `number`: negative for one that followed another."""

    number: int
    job: str
    queue: str
    customer: str = ""
    follows: bool = False
    state: str = "done"
    runs: list[Run] = field(default_factory=list)
    document: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    forgotten: int = 0

    def count(self, *events: str) -> int:
        return sum(one["event"] in events for one in self.events)

    @property
    def story(self) -> str:
        """Its history, and what its calls wrote down."""
        if not self.events:
            return "no history"
        first = self.events[0]["time_ms"]
        events = [
            f"{(one['time_ms'] - first) / 1000:.2f} {one['event']} {one.get('attempt', '')}"
            f" {one.get('worker_id', '')} {one.get('message', '')}".rstrip()
            for one in self.events
        ]
        begun = min((run.begun for run in self.runs), default=0.0)
        calls = [
            f"attempt {run.attempt} in {run.pid}: {run.begun - begun:.2f} to {run.seen - begun:.2f}"
            f" {run.how or 'died with its process'}"
            for run in self.runs
        ]
        return "\n    ".join(["history (s):", *events, "calls (s):", *calls])


Fault = tuple[str, str, str]
"""The kind, which is a column of the table; of which queue; and what to show of it."""


def of_job(sent: Sent) -> Iterator[tuple[str, str]]:
    """What is wrong with it: the kind, and a sentence."""
    state = sent.document["status"] if sent.document is not None else "gone"
    if state != sent.state:
        yield "end", f"is {state}, not {sent.state}"
    whole = [run for run in sent.runs if run.how == "whole"]
    if len(whole) > 1:
        yield "doubled", f"ran whole {len(whole)} times"
    for one, later in itertools.pairwise(sorted(sent.runs, key=lambda run: run.begun)):
        if later.begun < one.seen:
            yield "overlap", f"attempt {later.attempt} began {one.seen - later.begun:.2f} s before {one.attempt} was over"
    spent = sent.count("failed", "lapsed") - sum(run.how == "raised" for run in sent.runs)
    if spent > 0 and not sent.forgotten:
        yield "spent", f"{spent} retries were spent that its function did not ask for"
    ended = {one.get("attempt") for one in sent.events if one["event"] in ENDS}
    unended = [run.attempt for run in sent.runs if run.attempt not in ended]
    if unended and not sent.forgotten:
        yield "open", f"attempts {unended} began, and its history has no end of them"


def of_limit(sent: Iterable[Sent]) -> Iterator[tuple[Sent, str]]:
    """Where two jobs of one customer ran at a time."""
    by_customer: dict[str, list[tuple[Run, Sent]]] = defaultdict(list)
    for one in sent:
        if one.customer:
            by_customer[one.customer] += [(run, one) for run in one.runs]
    for runs in by_customer.values():
        runs.sort(key=lambda pair: pair[0].begun)
        for (run, one), (later, other) in itertools.pairwise(runs):
            if one is not other and later.begun < run.seen:
                yield other, f"began {run.seen - later.begun:.2f} s before job {one.number} of its customer was over"


def of_worker(worker: Worker, grace_s: float) -> Iterator[tuple[str, str]]:
    if worker.stayed:
        yield "stayed", f"took {worker.stop_s:.1f} s to end; it was given {grace_s:g}"
    if worker.code:
        yield "code", f"ended with exit code {worker.code}"
    if worker.orphans:
        yield "orphans", f"left {worker.orphans} processes behind"
    if worker.told is None:
        yield "code", "ended without being told to"


def faults_of(jobs: Sequence[Sent], workers: Sequence[Worker], grace_s: float) -> list[Fault]:
    """All that is wrong."""
    found = [
        (kind, one.queue, f"{kind}: job {one.number} ({one.queue}) {said}\n    {one.story}")
        for one in jobs
        for kind, said in of_job(one)
    ]
    found += [
        ("limit", one.queue, f"limit: job {one.number} ({one.queue}) {said}\n    {one.story}")
        for one, said in of_limit(jobs)
    ]
    followers = Counter(one.number for one in jobs if one.number < 0)
    for one in jobs:
        if one.follows and followers[-one.number] != 1:
            said = f"has {followers[-one.number]} followers, not 1"
            found.append(("end", one.queue, f"end: job {one.number} ({one.queue}) {said}\n    {one.story}"))
    found += [
        (kind, worker.way, f"{kind}: worker {worker.name} {said}\n    it said last: {worker.said[-300:]!r}")
        for worker in workers
        for kind, said in of_worker(worker, grace_s)
    ]
    return found


def table(jobs: Sequence[Sent], workers: Sequence[Worker], faults: Sequence[Fault]) -> str:
    """By queue what became of the jobs, by way what became of the workers."""
    wrong = Counter((kind, of) for kind, of, _ in faults)
    kinds = ("doubled", "overlap", "limit", "spent", "open", "end")
    rows = [("queue", "jobs", "begun", "whole", "cut", "died", "released", *kinds)]
    for queue in sorted({one.queue for one in jobs}):
        own = [one for one in jobs if one.queue == queue]
        how = Counter(run.how for one in own for run in one.runs)
        released = sum(one.count("released") for one in own)
        counts = (len(own), how.total(), how["whole"], how["cut"], how[""], released)
        rows.append((queue, *map(str, counts), *(str(wrong[kind, queue]) for kind in kinds)))
    kinds = ("stayed", "code", "orphans")
    others = [("workers", "started", "stopped", *kinds, "slowest stop, s")]
    for way in sorted({one.way for one in workers}):
        own = [one for one in workers if one.way == way]
        counts = len(own), sum(one.told is not None for one in own)
        worst = f"{max(one.stop_s for one in own):.1f}"
        others.append((way, *map(str, counts), *(str(wrong[kind, way]) for kind in kinds), worst))
    return f"{_columns(rows)}\n\n{_columns(others)}"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    )
