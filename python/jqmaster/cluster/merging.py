"""How documents of the same thing in several partitions become one."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from jqmaster.engine.replies import Document

_MOST_TOLD = 10
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def packed(document: Any) -> bytes:
    """As a script replies it."""
    blob: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    return blob


def first(each: Sequence[Any]) -> Any:
    """It is the same in all."""
    return each[0]


def _merged(each: Sequence[Document], **rules: Callable[[list[Any]], Any]) -> Document:
    """By the rule of each field. Else whole numbers add up, but moments, and all else is as the first has it."""
    merged = {}
    for name in dict.fromkeys(name for document in each for name in document):
        values = [document[name] for document in each if document.get(name) is not None]
        is_count = type(next(iter(values), None)) is int and not name.endswith("_ms")
        if values:
            merged[name] = rules.get(name, sum if is_count else first)(values)
    return merged


def queue(each: Sequence[Document]) -> Document:
    """How long jobs waited and ran is told by the partition where most ended, and what the oldest waits for by its
    own. It is empty when all are, as far as that is known."""
    oldest = sorted(each, key=lambda document: document.get("oldest_ready_ms") or math.inf)
    merged = _merged(oldest, paused=any, recent=_recent, empties_ms=max)
    for name in {"cause", "held_by", "unknown"} & (merged.keys() - oldest[0].keys()):
        del merged[name]
    if any("oldest_ready_ms" in document and "empties_ms" not in document for document in each):
        merged.pop("empties_ms", None)
    return merged


def _recent(each: Sequence[Document]) -> Document:
    most_first = sorted(each, key=lambda document: -document.get("done", 0))
    return _merged(most_first, span_ms=max)


def constraint(each: Sequence[Document]) -> Document:
    """Uses add up. What it is stands in each."""

    def busiest(keys: list[Any]) -> list[Any]:
        in_order = sorted((key for some in keys for key in some), key=lambda key: (-key["held"], -key["running"]))
        return in_order[: max(map(len, keys))]

    return _merged(each, concurrency=first, opens_ms=min, hold_ms=max, more=any, busiest=busiest)


def worker(each: Sequence[Document]) -> Document:
    """One that is registered in several partitions, with its jobs of all."""
    latest = sorted(each, key=lambda document: -(document["seen_ms"] or 0))

    def running(jobs: list[Any]) -> list[Any]:
        return sorted((list(job) for some in jobs for job in some), key=lambda job: (job[1], job[0]))

    return _merged(latest, since_ms=min, running=running, pid=first)


def failures(each: Sequence[Document]) -> Document:
    """A group, whose newest job is that of all."""
    latest = sorted(each, key=lambda document: -document["last_ms"])
    return _merged(latest, first_ms=min)


def found(each: Sequence[Document], count: int) -> Document:
    """What has a text in its name; a thing of several partitions once."""
    more = {kind for document in each for kind in document["more"]}
    merged: Document = {}
    for kind in each[0].keys() - {"more"}:
        things = {repr(thing): thing for document in each for thing in document[kind]}
        merged[kind] = list(things.values())[:count]
        more |= {kind} if len(things) > count else set()
    return {**merged, "more": sorted(more)}


def statistics(each: Sequence[Document], *, is_brief: bool = False) -> Document:
    """Counts and histograms add up, exactly; percentiles are those of the sum. Without histograms if it is brief."""
    merged = _merged(each, wait=_distribution, run=_distribution)
    for name in ("wait", "run") if is_brief else ():
        merged[name] = {field: value for field, value in merged[name].items() if field != "histogram"}
    return merged


def _distribution(each: Sequence[Document]) -> Document:
    some = [document for document in each if document["count"]]
    if len(some) < 2:
        return (some or each)[0]
    steps: Counter[float] = Counter()
    for document in some:
        for value, number in document["histogram"]:
            steps[value] += number
    count = sum(document["count"] for document in some)
    merged = _merged(some, mean=first, min=min, max=max) | {
        "mean": sum(document["mean"] * document["count"] for document in some) / count,
        "histogram": [list(step) for step in sorted(steps.items())],
    }
    for name, share in _SHARES.items():  # as jqlua/statistics/statisticsdoc.lua has it; a test compares them
        upto = itertools.accumulate(number for _, number in merged["histogram"])
        steps_on = (value for (value, _), so_many in zip(merged["histogram"], upto, strict=True)
                    if so_many >= count * share)  # fmt: skip
        merged[name] = max(merged["min"], min(merged["max"], next(steps_on, merged["max"])))
    return merged
