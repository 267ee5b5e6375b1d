"""Listings over the partitions of a cluster: in order, and each thing once."""

from __future__ import annotations

import base64
import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgpack

from jqmaster.cluster import merging
from jqmaster.cluster.partitions import Call, Partitions, all_of
from jqmaster.engine import replies
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid
from jqmaster.manifest.manifest import operations

_COUNT = 100  # of a page that does not say
_STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
_IN_ALL = ("all", "constrain")  # what goes to all partitions alike: the first one's trail tells of it

# By operation: the fields that name a thing, the field of the spec that asks for some by name, and how documents of the
# same thing become one.
NAMED: Mapping[str, tuple[Sequence[str], str, Callable[[Sequence[Document]], Document]]] = {
    "queues": (["name"], "names", merging.queue),
    "constraints": (["id"], "ids", merging.constraint),
    "schedules": (["id"], "ids", merging.first),
    "workers": (["id"], "ids", merging.worker),
    "failures": (["group"], "group", merging.failures),
    "stats": (["queue", "name"], "", merging.statistics),
}


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


async def by_name(cluster: Partitions, call: Call) -> Any:
    """A page in order of name. Its cursor is the last name, which any partition goes on behind."""
    fields, named, merge = NAMED[call.operation]
    is_brief = call.spec.get("brief") is True
    pages = await cluster.everywhere(call.but(brief=None) if is_brief else call)
    found: dict[str, list[bytes]] = {}
    for page in pages:
        # Once each: who names one twice is told of it twice by each partition.
        for name, blob in {_name(replies.document(blob), fields): blob for blob in page[1:]}.items():
            found.setdefault(name, []).append(blob)
    wanted = call.spec.get(named)
    names = [wanted] if isinstance(wanted, str) else wanted
    cursor, shown = ("", [name for name in names if name in found]) if names else _cut(found, pages, call)
    merge = partial(merging.statistics, is_brief=True) if is_brief else merge
    return [
        _bytes(cursor),
        *(merging.packed(merge([replies.plain_value(blob) for blob in found[name]]))
          if len(found[name]) > 1 or is_brief else found[name][0] for name in shown),
    ]  # fmt: skip


def _name(document: Document, fields: Sequence[str]) -> str:
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


async def tags(cluster: Partitions, call: Call) -> Any:
    """Counts of the same tag add up."""
    pages = await cluster.everywhere(call)
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({replies.text(tag): count for tag, count in page[1:]})
    cursor, shown = _cut(counts, pages, call)
    return [_bytes(cursor), *([_bytes(tag), counts[tag]] for tag in shown)]


async def interleaved(cluster: Partitions, call: Call) -> Any:
    """Jobs, or the trail: a page has as many of each partition, in order. The cursor has that of each that has more."""
    cursors = _cursors(call.spec.get("cursor"), len(cluster.engines))
    count = call.spec.get("count")
    most = count if type(count) is int and count > 0 else _COUNT
    share = max(1, most // len(cursors)) if count in (None, most) else count  # what is no count is refused

    async def ask(number: int) -> Any:
        return await cluster.at(number, call.but(cursor=cursors[number] or None, count=share))

    pages = dict(zip(cursors, await all_of(map(ask, cursors)), strict=True))
    looked = [page.pop(1) for page in pages.values()] if call.spec.get("looked") is True else []
    told = ([(_place(call, replies.document(one)), number, one) for one in page[1:]] for number, page in pages.items())
    entries = list(heapq.merge(*told, key=lambda entry: entry[0]))
    onward = {number: replies.text(page[0]) for number, page in pages.items() if page[0]}
    onward |= {number: cursors[number] for _, number, _ in entries[most:]}  # one of each: it comes with the next page
    shown = [one for _, number, one in entries[:most] if not (number and _is_of_all(call, one))]
    cursor = base64.urlsafe_b64encode(msgpack.packb(onward)) if onward else b""
    return [cursor, *([sum(looked)] if looked else []), *shown]


def _is_of_all(call: Call, entry: bytes) -> bool:
    what = operations().get(replies.plain_value(entry)["what"]) if call.operation == "trail" else None
    return what is not None and what.over in _IN_ALL


def _place(call: Call, document: Document) -> Any:
    """Where a document stands among those of other partitions, as far as it tells (docs/finding.md)."""
    if call.operation == "trail":
        return -int(document["time_ms"])
    state, number = replies.text(document["status"]), int(replies.text(document["id"])[:14], 16)
    moment = document.get("ended_ms") or document.get("started_ms") or document["created_ms"]
    in_state = document["priority"] if state == "queued" else moment
    sign = -1 if call.spec.get("newest") else 1
    if "tag" in (call.spec.get("where") or {}):
        return sign * number
    return replies.text(document["queue"]), _STATES.index(state), sign * in_state, sign * number


def _cursors(cursor: Any, count: int) -> dict[int, str]:
    if cursor is None or cursor == "":
        return dict.fromkeys(range(count), "")
    try:
        found: dict[int, str] = msgpack.unpackb(base64.urlsafe_b64decode(cursor), strict_map_key=False)
        if found.keys() <= set(range(count)):
            return found
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        pass
    raise _no_cursor()


def _no_cursor() -> Invalid:
    return Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")


async def in_turn(cluster: Partitions, call: Call) -> Any:
    """One partition after the other, whose number the cursor begins with."""
    number, colon, cursor = str(call.spec.get("cursor") or "0:").partition(":")
    if not (colon and number.isdecimal() and int(number) < len(cluster.engines)):
        raise _no_cursor()
    end, *found = await cluster.at(int(number), call.but(cursor=cursor or None))
    onward = f"{number}:{replies.text(end)}"
    if not end:
        onward = f"{int(number) + 1}:" if int(number) + 1 < len(cluster.engines) else ""
    if call.operation == "audit":
        found = [_bytes(f"partition {number}: {replies.text(problem)}") for problem in found]
    return [_bytes(onward), *found]
