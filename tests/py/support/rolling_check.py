"""What must hold of jobs and workers after rolling restarts (rolling.py)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolling_workers import Worker

ENDS = ("done", "failed", "lapsed", "released", "moved", "blocked", "cancelled")
LATE_S = 0.5  # before the end of a worker's grace
MOST_LINES = 16  # of a job's history
SHOWN = 10


@dataclass(slots=True)
class Run:
    """One call of a function for one attempt. `seen`: until when it was certainly at work. A call of which no end was
    written down is at work for as long as its process lives. Seconds of the monotonic clock. `is_late`: its worker was
    giving back what ran when it ended, so that its result may have come too late."""

    number: int
    job: str
    attempt: int
    pid: int
    worker: int
    begun: float
    seen: float
    how: str = ""  # whole, cut or raised
    is_late: bool = False


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
                self._open[key] = Run(said["number"], *key, said["worker"], said["at"], said["at"])
                self.runs.append(self._open[key])
            elif run := self._open.pop(key, None):
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
        """The latest of its history, and of what its calls wrote down. Seconds since it was enqueued, and since the
        first call."""
        lines = [f"{(one['time_ms'] - self.events[0]['time_ms']) / 1000:.2f} {_shown(one)}" for one in self.events]
        calls = [
            f"call of attempt {run.attempt} in process {run.pid}, {run.begun - self.runs[0].begun:.2f} to"
            f" {run.seen - self.runs[0].begun:.2f}: {run.how or 'ended with its process'}"
            for run in self.runs
        ]
        return "".join(f"\n    {line}" for line in [*lines[-MOST_LINES:], *calls[-MOST_LINES:]])


def _shown(event: Mapping[str, Any]) -> str:
    said = (event.get(name) for name in ("event", "attempt", "worker_id", "reason", "message"))
    return " ".join(str(one) for one in said if one is not None)


@dataclass(frozen=True, slots=True)
class Fault:
    """`story`: what to show besides."""

    kind: str
    said: str
    story: str = ""


def of_job(sent: Sent) -> Iterator[tuple[str, str]]:
    """What is wrong with it: the kind, and a sentence."""
    state = sent.document["status"] if sent.document is not None else "gone"
    if state != sent.state:
        yield "end", f"is {state}, not {sent.state}"
    whole = sum(run.how == "whole" and not run.is_late for run in sent.runs)
    if whole > 1:
        yield "doubled", f"ran whole {whole} times"
    for attempt, times in Counter(run.attempt for run in sent.runs).items():
        if times > 1:
            yield "doubled", f"attempt {attempt} began {times} times"
    for earlier, later in _at_once(sent.runs):
        too_soon_s = earlier.seen - later.begun
        yield "overlap", f"attempt {later.attempt} began {too_soon_s:.2f} s before {earlier.attempt} was over"
    failed = sent.count("failed", "lapsed")
    if sent.forgotten and sent.document is not None:
        failed = sent.document["retry_count"]
    spent = failed - sum(run.how == "raised" for run in sent.runs)
    if spent > 0:
        yield "spent", f"{spent} retries were spent that its function did not ask for"
    ends = {one.get("attempt"): one["event"] for one in sent.events if one["event"] in ENDS}
    for run in sent.runs:
        if run.attempt not in ends and not sent.forgotten:
            yield "open", f"attempt {run.attempt} began, and its history has no end of it"
        elif run.how in ("cut", "") and ends.get(run.attempt, "released") in ("done", "moved", "blocked"):
            yield "open", f"attempt {run.attempt} was broken off, and its history has it as {ends[run.attempt]}"


def _at_once(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """Each that began before one that had begun earlier was over, behind that one."""
    last: Run | None = None
    for run in sorted(runs, key=lambda run: run.begun):
        if last is not None and run.begun < last.seen:
            yield last, run
        if last is None or run.seen > last.seen:
            last = run


def of_limit(sent: Iterable[Sent]) -> Iterator[tuple[Sent, str]]:
    """Where two jobs of one customer ran at a time."""
    by_customer: dict[str, list[Sent]] = defaultdict(list)
    for one in sent:
        if one.customer:
            by_customer[one.customer].append(one)
    for jobs in by_customer.values():
        job_of = {id(run): one for one in jobs for run in one.runs}
        for earlier, later in _at_once(run for one in jobs for run in one.runs):
            job, other = job_of[id(earlier)], job_of[id(later)]
            if job is not other:
                too_soon_s = earlier.seen - later.begun
                yield other, f"began {too_soon_s:.2f} s before job {job.number} of its customer was over"


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
    found = [(one, kind, said) for one in jobs for kind, said in of_job(one)]
    found += [(one, "limit", said) for one, said in of_limit(jobs)]
    followers = Counter(-one.number for one in jobs if one.number < 0)
    found += [
        (one, "end", f"has {followers[one.number]} followers, not 1")
        for one in jobs
        if one.follows and followers[one.number] != 1
    ]
    faults = [Fault(kind, f"job {one.number} ({one.queue}) {said}", one.story) for one, kind, said in found]
    return faults + [
        Fault(kind, f"worker {worker.name} {said}", f"\n    it said last: {worker.said!r}")
        for worker in workers
        for kind, said in of_worker(worker, grace_s)
    ]


def told(faults: Sequence[Fault]) -> str:
    """Some jobs and workers with all that is wrong with each."""
    about: dict[str, list[str]] = defaultdict(list)
    for fault in faults:
        about[fault.story].append(f"{fault.kind}: {fault.said}")
    return "\n\n".join("\n".join(said) + story for story, said in list(about.items())[:SHOWN])
