"""Each worker of the demo writes down every outcome that was accepted, so that the check does not have to
believe the queue's own books."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from jqmaster.worker import Outcome


class Entry(NamedTuple):
    """One accepted outcome."""

    job: str
    attempt: int
    type: str
    state: str


class Journal:
    """Appends to a file, one write per entry: a kill -9 loses at most the last one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def note(self, outcome: Outcome, state: str) -> None:
        """To be called with every answer to a report; those that were not accepted are left out."""
        if not state.isupper():
            entry = Entry(outcome.job.id, outcome.job.attempt, outcome.spec["type"], state)
            os.write(self._file, json.dumps(entry).encode() + b"\n")


def read(path: Path) -> list[Entry]:
    """All entries; a torn last line is left out."""
    if not path.exists():
        return []
    return [Entry(*json.loads(line)) for line in path.read_text().split("\n")[:-1]]
