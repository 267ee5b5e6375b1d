"""Each worker of the demo writes down what it ran and every outcome that was accepted, so that the check does
not have to believe the queue's own books."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jqmaster.worker.worker import Outcome, current_job

AsyncFunction = Callable[[Any], Awaitable[Any]]


class Entry(NamedTuple):
    """One accepted outcome."""

    job: str
    attempt: int
    type: str
    state: str


class Moment(NamedTuple):
    """A function began or ended (`what`: "start", "end") its work on an attempt. Seconds, monotonic clock."""

    job: str
    attempt: int
    what: str
    at_s: float


Line = TypeVar("Line", Entry, Moment)


class Journal:
    """Appends to a file, one write per line: a kill -9 loses at most the last one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def note(self, outcome: Outcome, state: str) -> None:
        """To be called with every answer to a report; those that were not accepted are left out."""
        if not state.isupper():
            self._write(Entry(outcome.job.id, outcome.job.attempt, outcome.spec["type"], state))

    def around(self, function: AsyncFunction) -> AsyncFunction:
        """`function`, with its moments noted."""

        @functools.wraps(function)
        async def noted(argument: Any) -> Any:
            job = current_job.get()
            self._write(Moment(job.id, job.attempt, "start", time.monotonic()))
            try:
                return await function(argument)
            finally:
                self._write(Moment(job.id, job.attempt, "end", time.monotonic()))

        return noted

    def _write(self, line: Entry | Moment) -> None:
        os.write(self._file, json.dumps([type(line).__name__, *line]).encode() + b"\n")


def read(path: Path, kind: type[Line]) -> list[Line]:
    """All lines of one kind; a torn last line is left out."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    return [kind(*fields) for name, *fields in lines if name == kind.__name__]
