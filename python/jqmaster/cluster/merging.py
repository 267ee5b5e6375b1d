"""How documents of the same thing in several partitions become one: by a rule for each field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.replies import Document

_MOST_TOLD = 10

Rule = Callable[[list[Any]], Any]


def packed(document: Any) -> bytes:
    """As a script replies it."""
    blob: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    return blob


def merged(listing: str, blobs: Sequence[bytes]) -> bytes:
    """One document of those of several partitions."""
    how = LISTINGS[listing]
    documents = sorted(map(replies.plain_value, blobs), key=how.first)
    return blobs[0] if len(blobs) == 1 else packed(_merged(documents, how.rules))


def _merged(each: Sequence[Document], rules: Mapping[str, Rule]) -> Document:
    """Without a rule whole numbers add up, but moments, and all else is as the first has it."""
    document = {}
    for name in dict.fromkeys(name for one in each for name in one):
        values = [one[name] for one in each if one.get(name) is not None]
        if values:
            is_count = type(values[0]) is int and not name.endswith("_ms")
            document[name] = rules.get(name, sum if is_count else _first)(values)
    return document


def _first(values: list[Any]) -> Any:
    return values[0]


def _tallied(values: list[Any]) -> list[Any]:
    """Lists of [thing, …, count], the most first."""
    counts: Counter[str] = Counter()
    things: dict[str, Any] = {}
    for *thing, count in (entry for entries in values for entry in entries):
        counts[repr(thing)] += count
        things[repr(thing)] = thing
    return [[*things[key], count] for key, count in counts.most_common(_MOST_TOLD)]


def _busiest(values: list[Any]) -> list[Any]:
    keys = sorted((key for some in values for key in some), key=lambda key: (-key["held"], -key["running"]))
    return keys[: max(map(len, values))]


def _joined(values: list[Any]) -> list[Any]:
    return [job for some in values for job in some]


def _recent(values: list[Any]) -> Document:
    return _merged(values, {"span_ms": max, **_TIMES})


def _distribution(values: list[Any]) -> Document:
    """The mean, and percentiles, are the greatest of a partition."""
    some = [one for one in values if one["count"]] or values[:1]
    steps: Counter[float] = Counter()
    for value, count in (step for one in some for step in one.get("histogram", ())):
        steps[value] += count
    document = _merged(some, dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"), max) | {"min": min})
    return document | ({"histogram": [list(step) for step in sorted(steps.items())]} if steps else {})


class Listing(NamedTuple):
    """How documents of a listing are put together."""

    names: Sequence[str]
    """The fields that name a thing, in their order."""
    asked: str = ""
    """The field of the spec that asks for some by name."""
    rules: Mapping[str, Rule] = {}
    first: Callable[[Document], float] = lambda _: 0
    """Sorts them."""


_TIMES: Mapping[str, Rule] = {"wait": _distribution, "run": _distribution}
_USES: Mapping[str, Rule] = {
    "concurrency": _first, "opens_ms": min, "hold_ms": max, "more": any, "busiest": _busiest,
    "queues": _tallied,
}  # fmt: skip
LISTINGS: Mapping[str, Listing] = {
    # What the oldest job of a queue waits for is told by its partition.
    "queues": Listing(
        ["name"], "names",
        {"paused": any, "workers": max, "channels": max, "empties_ms": max, "recent": _recent},
        lambda queue: queue.get("oldest_ready_ms") or math.inf,
    ),
    "constraints": Listing(["id"], "ids", _USES),
    "schedules": Listing(["id"], "ids"),
    "workers": Listing(
        ["id"], "ids", {"since_ms": min, "running": _joined, "pid": _first}, lambda worker: -(worker["seen_ms"] or 0)
    ),
    "failures": Listing(
        ["group"], "group", {"first_ms": min}, lambda group: -float(group["last_ms"])
    ),
    "stats": Listing(["queue", "name"], rules=_TIMES),
}  # fmt: skip
