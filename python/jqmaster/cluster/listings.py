"""Listings over the partitions of a cluster: in order, and each thing once. Documents of the same thing become one by a
rule for each field."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgpack

from jqmaster.cluster.partitions import Call, Partitions, all_of
from jqmaster.engine import replies
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid
from jqmaster.manifest.manifest import operations

_COUNT = 100  # of a page that does not say

Rule = Callable[[list[Any]], Any]
_first: Rule = itemgetter(0)


def packed(document: Any) -> bytes:
    """As a script replies it."""
    blob: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    return blob


def merged(listing: str, blobs: Sequence[Any]) -> Any:
    """One document of those of several partitions; or one pair of a name and a count."""
    if len(blobs) == 1:
        return blobs[0]
    how = LISTINGS[listing]
    if not how.names:
        return [blobs[0][0], sum(count for _, count in blobs)]
    documents = sorted(map(replies.plain_value, blobs), key=how.first)
    document = _merged(documents, how.rules)
    if any("oldest_ready_ms" in one and "empties_ms" not in one for one in documents):
        document.pop("empties_ms", None)  # of a queue that never empties in one of them
    return packed(document)


def _merged(each: Sequence[Document], rules: Mapping[str, Rule]) -> Document:
    """Without a rule whole numbers add up, but moments, and all else is as the first has it."""
    document = {}
    for name in dict.fromkeys(name for one in each for name in one):
        values = [one[name] for one in each if one.get(name) is not None]
        if values:
            is_count = type(values[0]) is int and not name.endswith("_ms")
            document[name] = rules.get(name, sum if is_count else _first)(values)
    return document


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
    """The fields that name a thing, in their order; none, where pages have pairs of a name and a count."""
    rules: Mapping[str, Rule] = {}
    first: Callable[[Document], float] = lambda _: 0
    """Sorts them."""


_TIMES: Mapping[str, Rule] = {"wait": _distribution, "run": _distribution}
LISTINGS: Mapping[str, Listing] = {
    # What the oldest job of a queue waits for is told by its partition.
    "queues": Listing(
        ["name"],
        {"paused": any, "workers": max, "channels": max, "empties_ms": max, "recent": _recent, "today": _recent},
        lambda queue: queue.get("oldest_ready_ms") or math.inf,
    ),
    "constraints": Listing(
        ["id"], {"concurrency": _first, "opens_ms": min, "hold_ms": max, "more": any, "busiest": _busiest}
    ),
    "schedules": Listing(["id"]),
    "workers": Listing(
        ["id"], {"since_ms": min, "running": _joined, "pid": _first}, lambda worker: -(worker["seen_ms"] or 0)
    ),
    "failures": Listing(["group"], {"first_ms": min}, lambda group: -group["last_ms"]),
    "stats": Listing(["queue", "name"], rules=_TIMES),
    "tags": Listing([]),
}  # fmt: skip


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


async def by_name(cluster: Partitions, call: Call) -> Any:
    """A page in order of name. Its cursor is the last name, which any partition goes on behind."""
    listing = LISTINGS[call.operation]
    pages = await cluster.everywhere(call)
    found: dict[str, list[Any]] = {}
    for page in pages:
        # Once each: who names one twice is told of it twice by each partition.
        for name, blob in {_name(blob, listing.names): blob for blob in page[1:]}.items():
            found.setdefault(name, []).append(blob)
    wanted = next((call.spec[field] for field in ("names", "ids", "group") if field in call.spec), None)
    names = [wanted] if isinstance(wanted, str) else wanted
    cursor, shown = ("", [name for name in names if name in found]) if names else _cut(found, pages, call)
    return [_bytes(cursor), *(merged(call.operation, found[name]) for name in shown)]


def _name(blob: Any, fields: Sequence[str]) -> str:
    if not fields:
        return replies.text(blob[0])
    document = replies.document(blob)
    names = [replies.text(document[field]) for field in fields]
    return "\0".join([names[0], *("" if name == names[0] else name for name in names[1:])])  # as pairs are stored


def _cut(names: Mapping[str, Any], pages: Sequence[Any], call: Call) -> tuple[str, list[str]]:
    """The cursor, and what a page has of the names that pages of partitions have."""
    order = sorted(names, key=_bytes)
    ends = sorted((replies.text(page[0]) for page in pages if page[0]), key=_bytes)
    if ends:  # what lies behind the end of a partition's page is not known of it
        order = [name for name in order if _bytes(name) <= _bytes(ends[0])]
    shown = order[: call.spec.get("count") or _COUNT]
    return shown[-1] if len(shown) < len(order) else next(iter(ends), ""), shown


async def of_each(cluster: Partitions, call: Call) -> Any:
    """A page has as many of each partition, in order of what they tell; or their sum. The cursor has that of each that
    has more."""
    cursors = _cursors(call.spec.get("cursor"), len(cluster.engines))
    count = call.spec.get("count")
    most = count if type(count) is int and count > 0 else _COUNT
    asked = list(cursors)[:most]
    share = most // len(asked) if count in (None, most) else count  # what is no count is refused
    if all(argument.name != "count" for argument in operations()[call.operation].arguments):
        share = None

    async def ask(number: int) -> Any:
        return await cluster.at(number, call.but(cursor=cursors.pop(number) or None, count=share))

    pages = dict(zip(asked, await all_of(map(ask, asked)), strict=True))
    counts = [page.pop(1) for page in pages.values() if len(page) > 1 and isinstance(page[1], int)]
    shown = [one for number, page in pages.items() for one in page[1:] if not (number and _is_of_all(call, one))]
    if call.operation == "audit":
        shown = [_bytes(f"partition {n}: {replies.text(one)}") for n, page in pages.items() for one in page[1:]]
    elif key := _ORDERS.get(call.operation):
        shown.sort(key=lambda one: key(replies.document(one)), reverse=bool(call.spec.get("newest")))
    onward = cursors | {number: replies.text(page[0]) for number, page in pages.items() if page[0]}
    cursor = base64.urlsafe_b64encode(msgpack.packb(onward)) if onward else b""
    return [cursor, *([sum(counts)] if counts else []), *shown]


# What those who list things of each partition have in order.
_ORDERS: Mapping[str, Callable[[Document], float]] = {
    "jobs": lambda job: int(replies.text(job["id"])[:14], 16),
    "trail": lambda entry: -entry["time_ms"],
    "alerts": lambda alert: -alert["weight"],
}


def _is_of_all(call: Call, entry: bytes) -> bool:
    """What goes to all partitions alike the first one's trail tells."""
    what = operations().get(replies.plain_value(entry)["what"]) if call.operation == "trail" else None
    return what is not None and what.over == "all"


def _cursors(cursor: Any, count: int) -> dict[int, str]:
    if cursor is None or cursor == "":
        return dict.fromkeys(range(count), "")
    try:
        found: dict[int, str] = msgpack.unpackb(base64.urlsafe_b64decode(cursor), strict_map_key=False)
        if found and found.keys() <= set(range(count)):
            return found
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        pass
    raise Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")
