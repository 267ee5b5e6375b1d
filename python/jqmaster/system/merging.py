"""How documents of the same thing in several partitions become one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jqmaster.engine.replies import Document

_COUNTED = ("running", "keys", "lanes", "held", "looked", "full", "starts")  # of a constraint: no limits
_MOST_TOLD = 10
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def summed(each: Sequence[Document]) -> Document:
    """The first, with the sums of what are integers in all, but moments."""
    first = each[0]
    counts = {name for name, value in first.items() if type(value) is int and not name.endswith("_ms")}
    names = [name for name in counts if all(name in one for one in each)]
    return {**first, **{name: sum(one[name] for one in each) for name in names}}


def _of_all(each: Iterable[Document], name: str, choose: Callable[[list[Any]], Any]) -> Document:
    """A field that some of them have; it is in none where none has it."""
    values = [one[name] for one in each if one.get(name) is not None]
    return {name: choose(values)} if values else {}


def _tallied(each: Iterable[Document], name: str) -> Document:
    """Lists of [thing, count] or [part, part, count], the most first."""
    counts: Counter[str] = Counter()
    things: dict[str, Any] = {}
    for one in each:
        for *thing, count in one.get(name, ()):
            counts[repr(thing)] += count
            things[repr(thing)] = thing
    return {name: [[*things[key], count] for key, count in counts.most_common(_MOST_TOLD)]}


def queue(each: Sequence[Document]) -> Document:
    """Counts add up, the oldest moment is the least, and a bound is a partition's own, so they add up, too. What its
    oldest job waits for is what that partition says; it is empty when the last one is."""
    found = {**summed(each), **_of_all(each, "oldest_ready_ms", min), "paused": any(one["paused"] for one in each)}
    for name in ("cause", "held_by", "empties_ms", "held", "recent"):
        found.pop(name, None)
    waiting = [one for one in each if "oldest_ready_ms" in one]
    oldest = min(waiting, key=lambda one: int(one["oldest_ready_ms"]), default={})
    found |= {name: oldest[name] for name in ("cause", "held_by") if name in oldest}
    if waiting and all("empties_ms" in one for one in waiting):
        found["empties_ms"] = max(one["empties_ms"] for one in waiting)
    recent = [one["recent"] for one in each if "recent" in one]
    if recent:
        times = {name: one[name] for one in recent for name in ("wait", "run") if name in one}
        found["recent"] = {**summed(recent), **times, "span_ms": max(one["span_ms"] for one in recent)}
    if held := [one["held"] for one in each if "held" in one]:
        jobs: Counter[str] = Counter()
        for one in held:
            jobs.update({its["id"]: its["jobs"] for its in one["by"]})
        by = [{"id": name, "jobs": count} for name, count in sorted(jobs.items(), key=lambda its: (-its[1], its[0]))]
        found["held"] = {**summed(held), "by": by}
    return found


def constraint(each: Sequence[Document]) -> Document:
    """Uses add up. What it is stands in the first."""
    found = {**each[0], **{name: sum(one.get(name, 0) for one in each) for name in _COUNTED if name in each[0]}}
    found |= {**_of_all(each, "opens_ms", min), **_of_all(each, "hold_ms", max), **_of_all(each, "more", any)}
    if "busiest" in found:
        keys = [key for one in each for key in one.get("busiest", ())]
        most = max(len(one.get("busiest", ())) for one in each)
        found["busiest"] = sorted(keys, key=lambda key: (-key["held"], -key["running"]))[:most]
    return {**found, **(_tallied(each, "queues") if "queues" in found else {})}


def key(each: Sequence[Document]) -> Document:
    """The same key of the HTTP API, which was used where it was used last."""
    return {**each[0], **_of_all(each, "used_ms", max)}


def worker(each: Sequence[Document]) -> Document:
    """One that says so in several partitions, with its jobs of all."""
    latest = max(each, key=lambda one: int(one["seen_ms"] or 0))
    running = sorted((list(job) for one in each for job in one["running"]), key=lambda job: (job[1], job[0]))
    held, lapsed = (sum(one[name] for one in each) for name in ("held", "lapsed"))
    return {**latest, **_of_all(each, "since_ms", min), "running": running, "held": held, "lapsed": lapsed}


def failures(each: Sequence[Document]) -> Document:
    """A group: its newest job is that of all, its counts add up."""
    latest = max(each, key=lambda one: int(one["last_ms"]))
    found = {**latest, **summed([{"count": one["count"]} for one in each]), **_of_all(each, "first_ms", min)}
    if "counts" in found:
        found["counts"] = [sum(column) for column in zip(*(one["counts"] for one in each), strict=True)]
    if "looked" in found:
        found["looked"] = sum(one["looked"] for one in each)
        for name in ("names", "queues", "values"):
            found |= _tallied(each, name)
    return found


def statistics(each: Sequence[Document]) -> Document:
    """Counts and histograms add up, exactly."""
    return {**summed(each), **{name: distribution([one[name] for one in each]) for name in ("wait", "run")}}


def distribution(each: Sequence[Document]) -> Document:
    """One of several, from their histograms; percentiles are those of the sum."""
    some = [one for one in each if one["count"]]
    if len(some) < 2:
        return some[0] if some else each[0]
    steps: Counter[float] = Counter()
    for one in some:
        for value, number in one["histogram"]:
            steps[value] += number
    count = sum(one["count"] for one in some)
    mean = sum(one["mean"] * one["count"] for one in some) / count
    squares = sum((one["deviation"] ** 2 + one["mean"] ** 2) * one["count"] for one in some)
    least, most = min(one["min"] for one in some), max(one["max"] for one in some)
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


def brief(document: Document) -> Document:
    """Statistics without histograms."""
    kept = {}
    for name in ("wait", "run"):
        kept[name] = {field: value for field, value in document[name].items() if field != "histogram"}
    return {**document, **kept}
