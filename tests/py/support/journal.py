"""Each worker writes down which of its outcomes were accepted, so that the check need not believe the queue's own
books."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from jqmaster.worker.ending import Outcome


class Entry(NamedTuple):
    """One accepted outcome."""

    job: str
    attempt: int
    type: str
    state: str


class Journal:
    """Appends to a file, one write a line: a kill -9 loses at most the last one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def note(self, outcome: Outcome, state: str) -> None:
        """Note an answer to a report, unless it was refused."""
        if not state.isupper():
            entry = Entry(outcome.job.id, outcome.job.attempt, outcome.spec["type"], state)
            os.write(self._file, json.dumps(entry).encode() + b"\n")


def read(path: Path) -> list[Entry]:
    """All entries; a torn last line is left out."""
    return [Entry(*json.loads(line)) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
