"""Counters that never go back, out of statistics that do.

The engine keeps what happened by the hour, and forgets hours when they are old. A `Tally` looks at the same
hours again and again and adds what each has gained since; an hour that is gone takes nothing away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from jqmaster.engine.replies import Document

EVENTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
TIMES = ("wait", "run")
# Upper ends of the steps of waiting and running, in ms. The engine's own steps, a fifth apart, go into the
# first of these that has room for all of them.
ENDS_MS = (
    1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
)  # fmt: skip

Key = tuple[str, int] | str  # (wait or run, place of the step), `wait sum`, or an event
Cell = dict[Key, float]


def cell_of(document: Document) -> Cell:
    """What an hour's document counts."""
    cell: Cell = {event: document[event] for event in EVENTS if document[event]}
    for kind in TIMES:
        times = document[kind]
        if not times["count"]:
            continue
        cell[f"{kind} sum"] = times["mean"] * times["count"]
        for end_ms, count in times["histogram"]:
            step = (kind, bisect_left(ENDS_MS, end_ms))
            cell[step] = cell.get(step, 0) + count
    return cell


def _gained(cell: Cell, before: Cell) -> Cell:
    shrunk = any(cell.get(key, 0) < count for key, count in before.items() if not _is_sum(key))
    if shrunk:
        # Not the same hour any more: its queue was forgotten, and came again.
        return cell
    return {key: max(0.0, value - before.get(key, 0)) for key, value in cell.items()}


def _is_sum(key: Key) -> bool:
    return isinstance(key, str) and key.endswith(" sum")


class Tally:
    """Totals of one queue, or of all."""

    def __init__(self) -> None:
        self.totals: defaultdict[Key, float] = defaultdict(float)
        self._seen: dict[int, Cell] = {}

    def take(self, documents: Sequence[Document], *, counts: bool = True) -> Cell:
        """Look at the hours; what they gained since the last look. With `counts` off it is only noted where
        they stand: what was before is nobody's gain."""
        gains: defaultdict[Key, float] = defaultdict(float)
        seen = {document["begin_ms"]: cell_of(document) for document in documents}
        if counts:
            for begin_ms, cell in seen.items():
                for key, value in _gained(cell, self._seen.get(begin_ms, {})).items():
                    gains[key] += value
                    self.totals[key] += value
        self._seen = seen
        return gains


class Rest:
    """Totals of all that no tally counts: those of everything, less theirs.

    The looks at everything and at the parts are not of one moment, so the difference may go back a little;
    then the totals wait for it.
    """

    def __init__(self) -> None:
        self.totals: defaultdict[Key, float] = defaultdict(float)
        self._exact: defaultdict[Key, float] = defaultdict(float)

    def take(self, everything: Mapping[Key, float], parts: Sequence[Mapping[Key, float]]) -> None:
        """What all gained, and what those gained that are counted elsewhere."""
        for key in {*everything, *(key for part in parts for key in part)}:
            self._exact[key] += everything.get(key, 0) - sum(part.get(key, 0) for part in parts)
            self.totals[key] = max(self.totals[key], self._exact[key])


def cumulative(totals: Mapping[Key, float], kind: str) -> tuple[list[tuple[float, float]], float]:
    """Of `wait` or `run`: (end in seconds, count up to it), the last end infinite; and the sum in seconds."""
    ends = (*(end_ms / 1000 for end_ms in ENDS_MS), float("inf"))
    counts = accumulate(totals.get((kind, place), 0.0) for place in range(len(ends)))
    return list(zip(ends, counts, strict=True)), totals.get(f"{kind} sum", 0) / 1000
