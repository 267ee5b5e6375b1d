"""Counters that never go back, out of statistics that do.

The engine keeps what happened by the hour, and forgets hours when they are old. A `Tally` looks at the same
hours again and again and adds what each has gained since; an hour that is gone takes nothing away.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document

EVENTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
TIMES = ("wait", "run")
# Upper ends of the steps of waiting and running, in ms. The engine's own steps, a fifth apart, go into the
# first of these that has room for all of them.
ENDS_MS = (
    1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
)  # fmt: skip
_HOUR_MS = 3_600_000
_AT_ONCE = 10  # calls
_KEPT = 400  # queues whose counters are known

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
    shrunk = any(cell.get(key, 0) < count for key, count in before.items() if not str(key).endswith(" sum"))
    if shrunk:
        # Not the same hour any more: its queue was forgotten, and came again.
        return cell
    return {key: max(0.0, value - before.get(key, 0)) for key, value in cell.items()}


class Tally:
    """Totals of one queue, or of all."""

    def __init__(self) -> None:
        self.totals: defaultdict[Key, float] = defaultdict(float)
        self._seen: dict[int, Cell] = {}

    def take(self, documents: Sequence[Document], *, counts: bool = True) -> None:
        """Look at the hours. With `counts` off it is only noted where they stand: what was before is nobody's gain."""
        seen = {document["begin_ms"]: cell_of(document) for document in documents}
        for begin_ms, cell in seen.items() if counts else ():
            for key, value in _gained(cell, self._seen.get(begin_ms, {})).items():
                self.totals[key] += value
        self._seen = seen


class Tallies:
    """Those of a namespace: of the queues that are told one by one, and under None of all together."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tallies: dict[str | None, Tally] = {}
        self._from_ms: int | None = None
        self._looking = asyncio.Lock()  # figures that were overtaken would count as new ones

    async def look(self, names: Iterable[str], now_ms: int, *, is_whole: bool) -> dict[str | None, Tally]:
        """Bring the counters up to date. `is_whole`: there are no queues but these, so one that is not known is new and
        counts from its first job."""
        async with self._looking:
            return await self._look([None, *names], now_ms, is_whole=is_whole)

    async def _look(self, told: list[str | None], now_ms: int, *, is_whole: bool) -> dict[str | None, Tally]:
        is_first = self._from_ms is None
        latest_ms = now_ms // _HOUR_MS * _HOUR_MS - _HOUR_MS
        # What is before was looked at in full already, also when the clock went back meanwhile.
        from_ms = self._from_ms = latest_ms if self._from_ms is None else self._from_ms
        to_ms = max(now_ms, from_ms) + 2 * _HOUR_MS
        for start in range(0, len(told), _AT_ONCE):
            some = told[start : start + _AT_ONCE]
            asked = [self._engine.stats("hour", from_ms=from_ms, to_ms=to_ms, queue=name) for name in some]
            for name, documents in zip(some, await asyncio.gather(*asked), strict=True):
                is_known = name in self._tallies
                tally = self._tallies.setdefault(name, Tally())
                tally.take(documents, counts=not is_first and (is_known or is_whole))
        self._from_ms = max(from_ms, latest_ms)
        for name in [name for name in self._tallies if name not in told]:
            # Not told any more, or forgotten: then nothing of what it had is there when it comes again.
            self._tallies[name].take([])
            if len(self._tallies) > _KEPT:
                del self._tallies[name]
        return {name: self._tallies[name] for name in told}


def cumulative(totals: Mapping[Key, float], kind: str) -> tuple[list[tuple[float, float]], float]:
    """Of `wait` or `run`: (end in seconds, count up to it), the last end infinite; and the sum in seconds."""
    ends = (*(end_ms / 1000 for end_ms in ENDS_MS), float("inf"))
    counts = accumulate(totals.get((kind, place), 0.0) for place in range(len(ends)))
    return list(zip(ends, counts, strict=True)), totals.get(f"{kind} sum", 0) / 1000
