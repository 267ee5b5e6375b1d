"""How documents of the same thing in several partitions become one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jqmaster.engine.replies import Document

_USES = ("running", "keys", "lanes", "held", "looked", "full", "starts")  # of a constraint: no limits
_MOST_TOLD = 10
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def first(each: Sequence[Document]) -> Document:
    """It is the same in all."""
    return each[0]


def summed(each: Sequence[Document]) -> Document:
    """The first, with the sums of what are integers in all, but moments."""
    counts = {name for name, value in each[0].items() if type(value) is int and not name.endswith("_ms")}
    names = [name for name in counts if all(name in document for document in each)]
    return {**each[0], **{name: sum(document[name] for document in each) for name in names}}


def _chosen(each: Iterable[Document], **choices: Callable[[list[Any]], Any]) -> Document:
    """Fields that some of them have; they are in none where none has them."""
    found = {}
    for name, choose in choices.items():
        if values := [document[name] for document in each if document.get(name) is not None]:
            found[name] = choose(values)
    return found


def _tallied(each: Iterable[Document], name: str) -> Document:
    """Lists of [thing, count] or [part, part, count], the most first."""
    counts: Counter[str] = Counter()
    things: dict[str, Any] = {}
    for document in each:
        for *thing, count in document.get(name, ()):
            counts[repr(thing)] += count
            things[repr(thing)] = thing
    return {name: [[*things[key], count] for key, count in counts.most_common(_MOST_TOLD)]}


def queue(each: Sequence[Document]) -> Document:
    """Counts add up, and the bound of each partition. How long jobs waited and ran is that of the partition where most
    ended; what the oldest one waits for is what its partition says."""
    merged = {**summed(each), "paused": any(document["paused"] for document in each)}
    for name in ("cause", "held_by", "empties_ms", "held", "oldest_ready_ms"):
        merged.pop(name, None)
    waiting = [document for document in each if "oldest_ready_ms" in document]
    if waiting:
        oldest = min(waiting, key=lambda document: int(document["oldest_ready_ms"]))
        merged |= {name: oldest[name] for name in ("oldest_ready_ms", "cause", "held_by") if name in oldest}
        if all("empties_ms" in document for document in waiting):
            merged["empties_ms"] = max(document["empties_ms"] for document in waiting)
    if recent := [document["recent"] for document in each if "recent" in document]:
        most = max(recent, key=lambda document: int(document.get("done", 0)))
        times = {name: most[name] for name in ("wait", "run") if name in most}
        merged["recent"] = {**summed(recent), **times, "span_ms": max(document["span_ms"] for document in recent)}
    if held := [document["held"] for document in each if "held" in document]:
        jobs: Counter[str] = Counter()
        for document in held:
            jobs.update({entry["id"]: entry["jobs"] for entry in document["by"]})
        merged["held"] = {**summed(held), "by": [{"id": name, "jobs": count} for name, count in jobs.most_common()]}
    return merged


def constraint(each: Sequence[Document]) -> Document:
    """Uses add up. What it is stands in the first."""
    sums = {name: sum(document.get(name, 0) for document in each) for name in _USES if name in each[0]}
    merged = {**each[0], **sums, **_chosen(each, opens_ms=min, hold_ms=max, more=any)}
    if "busiest" in merged:
        keys = [key for document in each for key in document.get("busiest", ())]
        most = max(len(document.get("busiest", ())) for document in each)
        merged["busiest"] = sorted(keys, key=lambda key: (-key["held"], -key["running"]))[:most]
    return {**merged, **(_tallied(each, "queues") if "queues" in merged else {})}


def worker(each: Sequence[Document]) -> Document:
    """One that is registered in several partitions, with its jobs of all."""
    latest = max(each, key=lambda document: int(document["seen_ms"] or 0))
    running = sorted((list(job) for document in each for job in document["running"]), key=lambda job: (job[1], job[0]))
    sums = {name: sum(document.get(name) or 0 for document in each) for name in ("held", "lapsed", "max_jobs")}
    return {**latest, **_chosen(each, since_ms=min), "running": running, **sums}


def failures(each: Sequence[Document]) -> Document:
    """A group: its newest job is that of all, its counts add up."""
    latest = max(each, key=lambda document: int(document["last_ms"]))
    merged = {**latest, **_chosen(each, first_ms=min, count=sum, looked=sum)}
    if "counts" in merged:
        merged["counts"] = [sum(column) for column in zip(*(document["counts"] for document in each), strict=True)]
    for name in ("names", "queues", "values") if "looked" in merged else ():
        merged |= _tallied(each, name)
    return merged


def statistics(each: Sequence[Document]) -> Document:
    """Counts and histograms add up, exactly."""
    return {**summed(each), **{name: _distribution([one[name] for one in each]) for name in ("wait", "run")}}


def brief(document: Document) -> Document:
    """Statistics without histograms."""
    times = {name: document[name] for name in ("wait", "run")}
    return {**document, **{name: {field: value for field, value in time.items() if field != "histogram"}
                           for name, time in times.items()}}  # fmt: skip


def _distribution(each: Sequence[Document]) -> Document:
    """One of several, from their histograms; percentiles are those of the sum."""
    some = [document for document in each if document["count"]]
    if len(some) < 2:
        return some[0] if some else each[0]
    steps: Counter[float] = Counter()
    for document in some:
        for value, number in document["histogram"]:
            steps[value] += number
    count = sum(document["count"] for document in some)
    mean = sum(document["mean"] * document["count"] for document in some) / count
    squares = sum((one["deviation"] ** 2 + one["mean"] ** 2) * one["count"] for one in some)
    least, most = min(document["min"] for document in some), max(document["max"] for document in some)
    order = sorted(steps.items())
    return {
        "count": count, "mean": mean, "deviation": math.sqrt(max(0.0, squares / count - mean * mean)), "min": least,
        "max": most, "histogram": [list(step) for step in order],
        **{name: _percentile(order, count * share, least, most) for name, share in _SHARES.items()},
    }  # fmt: skip


def _percentile(steps: Sequence[tuple[float, int]], left: float, least: float, most: float) -> float:
    """As jqlua/statistics/statisticsdoc.lua has it; the tests hold one against the other."""
    for value, number in steps:
        left -= number
        if left <= 0:
            return max(least, min(most, value))
    return most
