"""What functions wrote down of their calls, and what must hold of it after rolling restarts (rolling.py)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LATE_S = 0.5  # before the end of a worker's grace


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
        for line in map(json.loads, lines):
            key = line["job"], line["attempt"], line["pid"]
            if line["what"] == "begin":
                self._open[key] = Run(line["number"], *key, line["worker"], line["at"], line["at"])
                self.runs.append(self._open[key])
            elif run := self._open.pop(key, None):
                run.seen, run.how = line["at"], line["what"]
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

    @property
    def story(self) -> str:
        """Its latest calls, by seconds since the first."""
        return "".join(
            f"\n    attempt {run.attempt} in process {run.pid}, {run.begun - self.runs[0].begun:.2f} to"
            f" {run.seen - self.runs[0].begun:.2f}: {run.how or 'ended with its process'}"
            for run in self.runs[-16:]
        )


def of_job(sent: Sent) -> Iterator[str]:
    """What is wrong with it."""
    document = sent.document or {"status": "gone", "retry_count": 0}
    if document["status"] != sent.state:
        yield f"is {document['status']}, not {sent.state}"
    if (whole := sum(run.how == "whole" and not run.is_late for run in sent.runs)) > 1:
        yield f"ran whole {whole} times"
    for attempt, times in Counter(run.attempt for run in sent.runs).items():
        if times > 1:
            yield f"attempt {attempt} began {times} times"
    for earlier, later in at_once(sent.runs):
        yield f"attempt {later.attempt} began {earlier.seen - later.begun:.2f} s before {earlier.attempt} was over"
    if (spent := document["retry_count"] - sum(run.how == "raised" for run in sent.runs)) > 0:
        yield f"{spent} retries were spent that its function did not ask for"


def at_once(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """Each that began before one that had begun earlier was over, behind that one."""
    last: Run | None = None
    for run in sorted(runs, key=lambda run: run.begun):
        if last is not None and run.begun < last.seen:
            yield last, run
        if last is None or run.seen > last.seen:
            last = run


def of_limit(jobs: Iterable[Sent]) -> Iterator[tuple[Sent, str]]:
    """Where two jobs of one customer ran at a time."""
    by_customer: dict[str, list[Sent]] = defaultdict(list)
    for job in jobs:
        if job.customer:
            by_customer[job.customer].append(job)
    for some in by_customer.values():
        job_of = {id(run): job for job in some for run in job.runs}
        for earlier, later in at_once(run for job in some for run in job.runs):
            job, other = job_of[id(earlier)], job_of[id(later)]
            if job is not other:
                yield (
                    other,
                    f"began {earlier.seen - later.begun:.2f} s before job {job.number} of its customer was over",
                )
