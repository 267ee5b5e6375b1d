"""What statistics say over time: the largest queues or names beside each other, and what is different since a moment.

Each is a few reads of ``stats``, whatever carries the calls. No more than ``MOST_PAIRS`` pairs of queue and name are
looked at; the answer says how many were, and whether there are more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

from jqmaster.engine.operations import CallsByName
from jqmaster.engine.replies import Document

Split = Literal["outcome", "queue", "name"]
Bucket = Literal["minute", "hour", "day"]

MOST_PAIRS = 1000
OUTCOMES = ("done", "failed", "lapsed", "error", "cancelled")
FAILING = ("failed", "lapsed", "error")
_PAGE = 200
_LEVELS: tuple[tuple[Bucket, int, int], ...] = (
    ("minute", 60_000, 180), ("hour", 3_600_000, 192), ("day", 86_400_000, 400),
)  # fmt: skip
_SMOOTH = 5  # added to counts that are compared: three failures instead of one say little
_SMOOTH_MS = 20
_ENOUGH = 5  # runs, before a percentile of theirs is compared


class TrendCalls(CallsByName):
    """Reads that are made of others."""

    async def trends(
        self,
        split: Split = "outcome",
        *,
        from_ms: int,
        to_ms: int | None = None,
        top: int = 8,
        now_ms: int | None = None,
    ) -> Document:
        """What came to an end (done, failed, lapsed, cancelled) over time, by ``outcome``, ``queue`` or ``name``.

        ``{by, step_ms, as_of_ms, begins: [ms, …], series: [{name, count, values}, …], rest, pairs, more}``: by minute
        where those are kept, else by hour or day; the ``top`` largest series, the largest first; ``rest``: the
        values of all others. ``ran_on``: how many attempts ran at each begin and have ended since; ``grown``:
        by how much more jobs have not ended now than had then, as far as they were enqueued or came to an end.
        ``pairs`` of queue and name were looked at, and there may be ``more``: then a larger one may be missing
        among the series, and is in ``rest``.
        """
        now_ms = int(time.time() * 1000) if now_ms is None else now_ms
        by, step_ms = level_of(from_ms, now_ms)
        first_ms, end_ms = from_ms // step_ms * step_ms, min(to_ms or now_ms, now_ms)
        begins = list(range(first_ms, end_ms, step_ms))
        found = await self.stats(by, from_ms=first_ms, brief=True)
        told: Document = {"by": by, "step_ms": step_ms, "begins": begins, "split": split, "pairs": 0, "more": False}
        told["as_of_ms"] = now_ms
        told["ran_on"] = [-sum(one["net_starts"] for one in found if one["begin_ms"] >= begin) for begin in begins]
        told["grown"] = [sum(_growth(one) for one in found if one["begin_ms"] >= begin) for begin in begins]
        if split == "outcome":
            rows = [(kind, _spread(begins, found, partial(_of, kind))) for kind in OUTCOMES]
            return {**told, "series": [_series(*row) for row in rows], "rest": [0] * len(begins)}
        names, pairs, more = await self._largest(split, by, first_ms, end_ms, top)
        rest, series = _spread(begins, found, ends), []
        for name in names:
            its: list[Document] = await self.call(
                "stats", by, from_ms=first_ms, to_ms=end_ms, brief=True, **{split: name}
            )
            values = _spread(begins, its, ends)
            series.append(_series(name, values))
            rest = [max(0, left - value) for left, value in zip(rest, values, strict=True)]
        return {**told, "series": series, "rest": rest, "pairs": pairs, "more": more}

    async def _largest(self, split: str, by: Bucket, from_ms: int, to_ms: int, top: int) -> tuple[list[str], int, bool]:
        sums, pairs, more = await self._pairs(by, from_ms, to_ms)
        totals: dict[str, int] = {}
        for one in sums:
            totals[one[split]] = totals.get(one[split], 0) + ends(one)
        names = sorted((name for name in totals if totals[name]), key=lambda name: (-totals[name], name))
        return names[:top], pairs, more

    async def changes(
        self, since_ms: int, *, span_s: float = 3600, top: int = 100, now_ms: int | None = None
    ) -> Document:
        """What is different since a moment, such as a deploy: each pair of queue and name in equal times before and
        after, the largest change first.

        ``{by, before: {from_ms, to_ms}, after: {from_ms, to_ms}, rows, pairs, more}``. The minute (or hour, of
        what is longer ago) of the moment itself is left out, as it is both. Each row has ``queue``, ``name``,
        ``change`` (how many times as large or as small the most changed figure is), ``of`` (which that is:
        ``ended``, ``failing`` or ``run``), and in ``before`` and ``after``: ``ended`` and ``failing`` per
        minute, ``failing_share``, and ``run_p95`` in ms, None where too few ran, or it is not known by the
        minute. While nothing is behind it there are no rows.
        """
        now_ms = int(time.time() * 1000) if now_ms is None else now_ms
        span_ms = int(span_s * 1000)
        by, step_ms = level_of(since_ms - span_ms, now_ms)
        middle, span_ms = since_ms // step_ms * step_ms, max(step_ms, span_ms // step_ms * step_ms)
        before = (middle - span_ms, middle)
        after = (middle + step_ms, min(middle + step_ms + span_ms, max(now_ms, middle + step_ms)))
        sides, pairs, more = [], 0, False
        for from_ms, to_ms in (before, after):
            found, looked, is_cut = await self._pairs(by, from_ms, to_ms) if to_ms > from_ms else ([], 0, False)
            sides.append({(one["queue"], one["name"]): _figures(one, (to_ms - from_ms) / 60_000) for one in found})
            pairs, more = max(pairs, looked), more or is_cut
        lasted = [(to_ms - from_ms) / 60_000 for from_ms, to_ms in (before, after)]
        keys = sides[0].keys() | sides[1].keys() if lasted[1] else ()
        there, now = ([side.get(key) or _figures({}, 1) for key in keys] for side in sides)
        rows = [_row(*one, min(lasted)) for one in zip(keys, there, now, strict=True)]
        rows.sort(key=lambda row: (-row["change"], row["queue"], row["name"]))
        told = [{"from_ms": from_ms, "to_ms": to_ms} for from_ms, to_ms in (before, after)]
        return {"by": by, "before": told[0], "after": told[1], "rows": rows[:top], "pairs": pairs, "more": more}

    async def _pairs(self, by: Bucket, from_ms: int, to_ms: int) -> tuple[list[Document], int, bool]:
        found: list[Document] = []
        cursor: str | None = None
        for _ in range(MOST_PAIRS):
            page = await self.stats(
                by=by, series=True, from_ms=from_ms, to_ms=to_ms, cursor=cursor, count=_PAGE, brief=True
            )
            found += page.documents
            cursor = page.cursor
            if not cursor or len(found) >= MOST_PAIRS:
                break
        return found, len(found), bool(cursor)


def level_of(from_ms: int, now_ms: int) -> tuple[Bucket, int]:
    """The finest buckets that are still kept of a moment, and how long each is in ms."""
    for by, step_ms, kept in _LEVELS:
        if from_ms // step_ms > now_ms // step_ms - kept:
            return by, step_ms
    return "day", _LEVELS[-1][1]


def ends(one: Document) -> int:
    """How many attempts and jobs came to an end."""
    return sum(one[kind] for kind in OUTCOMES)


def _growth(one: Document) -> int:
    return int(one["enqueued"] - one["done"] - one["error"] - one["cancelled"] - one["skipped"])


def _of(kind: str, one: Document) -> int:
    return int(one[kind])


def _spread(begins: list[int], found: Iterable[Document], value: Callable[[Document], int]) -> list[int]:
    known = {one["begin_ms"]: value(one) for one in found}
    return [known.get(begin, 0) for begin in begins]


def _series(name: str, values: list[int]) -> Document:
    return {"name": name, "count": sum(values), "values": values}


def _figures(one: Document, minutes: float) -> Document:
    ended = ends(one) if one else 0
    failing = sum(one.get(kind, 0) for kind in FAILING)
    run = one.get("run")
    return {
        "ended": ended / minutes,
        "failing": failing / minutes,
        "failing_share": failing / ended if ended else None,
        "run_p95": run["p95"] if run and run["count"] >= _ENOUGH else None,
    }


def _times(one: float, other: float, more: float) -> float:
    ratio = (one + more) / (other + more)
    return max(ratio, 1 / ratio)


def _row(key: tuple[str, str], before: Document, after: Document, minutes: float) -> Document:
    found = {figure: _times(before[figure], after[figure], _SMOOTH / minutes) for figure in ("ended", "failing")}
    if before["run_p95"] is not None and after["run_p95"] is not None:
        found["run"] = _times(before["run_p95"], after["run_p95"], _SMOOTH_MS)
    most = max(found, key=lambda figure: found[figure])
    row: dict[str, Any] = {"queue": key[0], "name": key[1], "change": round(found[most], 3), "of": most}
    return {**row, "before": before, "after": after}
