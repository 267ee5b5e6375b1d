"""Listings over the partitions of a cluster, merged: in order, and each thing once."""

from __future__ import annotations

import base64
import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack

from jqmaster.cluster import merging
from jqmaster.cluster.call import Call, all_of, packed
from jqmaster.engine import replies
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid

if TYPE_CHECKING:
    from jqmaster.cluster.cluster import Cluster

_COUNT = 100  # of a page that does not say
_MOST_TAGS = 1000
_STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
# Of what is set everywhere the first partition tells.
_SET_EVERYWHERE = frozenset((
    "config", "constrain", "forget", "grant", "hold", "queue", "revoke", "subscribe", "unconstrain", "unsubscribe",
    "worker", "unschedule",
))  # fmt: skip


class _Listing(NamedTuple):
    """What is in order of a name: the fields of that, how documents of the same become one, and the field of the spec
    that asks for some by name."""

    key: Sequence[str]
    merge: Callable[[Sequence[Document]], Document] = merging.first
    named: str = ""


_LISTINGS = {
    "queues": _Listing(["name"], merging.queue, "names"),
    "constraints": _Listing(["id"], merging.constraint, "ids"),
    "schedules": _Listing(["id"], named="ids"),
    "workers": _Listing(["id"], merging.worker, "ids"),
    "failures": _Listing(["group"], merging.failures, "group"),
    "stats": _Listing(["queue", "name"], merging.statistics),
}


async def by_name(cluster: Cluster, call: Call) -> Any:
    """A page in order of name. Its cursor is the last name, which any partition goes on behind."""
    listing = _LISTINGS[call.operation]
    is_brief = call.spec.get("brief") is True
    pages = await cluster.everywhere(call.but(brief=None) if is_brief else call)
    found: dict[str, list[bytes]] = {}
    for page in pages:
        # Once each: who names one twice is told of it twice by each partition.
        for key, document in {_key(listing, replies.document(one)): one for one in page[1:]}.items():
            found.setdefault(key, []).append(document)
    named = call.spec.get(listing.named)
    names = [named] if isinstance(named, str) else named
    cursor, shown = ("", [name for name in names if name in found]) if names else _cut(found, pages, call)
    reply: list[Any] = [_bytes(cursor)]
    for name in shown:
        each = found[name]
        if len(each) > 1 or is_brief:
            document = listing.merge([replies.plain_document(one) for one in each])
            each = [packed(merging.brief(document) if is_brief else document)]
        reply.append(each[0])
    return reply


def _key(listing: _Listing, document: Document) -> str:
    names = [replies.text(document[field]) for field in listing.key]
    if len(names) == 2 and names[0] == names[1]:
        names[1] = ""  # of a pair of queue and name, as they are stored
    return "\0".join(names)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _cut(names: Mapping[str, Any], pages: Sequence[Any], call: Call) -> tuple[str, list[str]]:
    """The cursor, and what a page has of the names that pages of partitions have."""
    order = sorted(names, key=_bytes)
    ends = sorted((replies.text(page[0]) for page in pages if page[0]), key=_bytes)
    if ends:  # what lies behind the end of a partition's page is not known of it
        order = [name for name in order if _bytes(name) <= _bytes(ends[0])]
    shown = order[: call.spec.get("count") or _COUNT]
    return shown[-1] if len(shown) < len(order) else next(iter(ends), ""), shown


async def tags(cluster: Cluster, call: Call) -> Any:
    """Counts of the same tag add up. Of the most used ones a thousand of each partition are looked at."""
    top = call.spec.get("top")
    pages = await cluster.everywhere(call if type(top) is not int or top < 1 else call.but(top=_MOST_TAGS))
    counts: Counter[str] = Counter()
    for page in pages:
        for tag, count in page[1:]:
            counts[replies.text(tag)] += count
    if top is not None:
        return [b"", *([_bytes(tag), count] for tag, count in counts.most_common(top))]
    cursor, shown = _cut(counts, pages, call)
    return [_bytes(cursor), *([_bytes(tag), counts[tag]] for tag in shown)]


# -- in another order --------------------------------------------------------------------------------------------------


async def interleaved(cluster: Cluster, call: Call) -> Any:
    """Jobs, or the trail. The order within a partition is its own; among them it is by what documents tell. The cursor
    has that of each partition that has more."""
    count = call.spec.get("count")
    cursors = _cursors(cluster, call.spec.get("cursor"))
    asked = (cluster.at(number, call.but(cursor=cursor or None)) for number, cursor in cursors.items())
    pages = dict(zip(cursors, await all_of(asked), strict=True))
    looked = [page.pop(1) for page in pages.values()] if call.spec.get("looked") is True else []
    told = ([(_place(call, replies.document(one)), number, one) for one in page[1:]] for number, page in pages.items())
    left = {number: len(page) - 1 for number, page in pages.items()}
    taken: list[tuple[int, bytes]] = []
    is_cut = any(not size and pages[number][0] for number, size in left.items())
    for _, number, document in heapq.merge(*told, key=lambda entry: entry[0]):
        if is_cut or len(taken) == (count if type(count) is int else _COUNT):
            break
        taken.append((number, document))
        left[number] -= 1
        is_cut = not left[number] and pages[number][0] not in (b"", "")  # what it has next is not known
    onward: dict[int, str] = {}
    for number, page in pages.items():
        used = len(page) - 1 - left[number]
        end = replies.text(page[0])
        if left[number] and used:
            again = call.but(cursor=cursors[number] or None, count=used)
            end = replies.text((await cluster.at(number, again))[0])
        elif left[number]:
            end = cursors[number]
        if end or left[number]:
            onward[number] = end
    shown = [one for number, one in taken if not number or not _is_told_before(call.operation, one)]
    return [_cursor(onward), *([sum(looked)] if looked else []), *shown]


def _is_told_before(operation: str, document: bytes) -> bool:
    return operation == "trail" and replies.plain_document(document)["what"] in _SET_EVERYWHERE


def _place(call: Call, document: Document) -> Any:
    """Where a document stands among those of other partitions (docs/protocol.md, section 14)."""
    if call.operation == "trail":
        return -int(document["time_ms"])
    state, queue = replies.text(document["status"]), replies.text(document["queue"])
    number = int(replies.text(document["id"])[:14], 16)
    moment = document.get("ended_ms") or document.get("started_ms") or document["created_ms"]
    in_state = (document["priority"] if state == "queued" else moment, number)
    if call.spec.get("recent"):
        is_over = state not in _STATES[:5]
        rank = 0 if state == "running" else 1 if is_over else 2 + ("retrying", *_STATES[:3]).index(state)
        return rank, *((-moment, -number) if rank < 2 else in_state)
    where = call.spec.get("where") or {}
    sign = -1 if call.spec.get("newest") else 1
    if "tag" in where or "group" in where:
        return sign * (number if "tag" in where else moment)
    return queue, _STATES.index(state), sign * in_state[0], sign * number


def _cursor(cursors: Mapping[int, str]) -> bytes:
    return base64.urlsafe_b64encode(msgpack.packb(dict(cursors))) if cursors else b""


def _cursors(cluster: Cluster, cursor: Any) -> dict[int, str]:
    if cursor is None or cursor == "":
        return dict.fromkeys(range(len(cluster.engines)), "")
    try:
        found = msgpack.unpackb(base64.urlsafe_b64decode(cursor), strict_map_key=False)
        if all(0 <= number < len(cluster.engines) and isinstance(one, str) for number, one in found.items()):
            return dict(found)
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        pass
    raise _no_cursor()


def _no_cursor() -> Invalid:
    return Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")


async def in_turn(cluster: Cluster, call: Call) -> Any:
    """One partition after the other, whose number the cursor begins with."""
    start = "0" if call.operation == "audit" else ""  # and the end
    told = call.spec.get("cursor")
    number, colon, cursor = str(told if told not in (None, start) else f"0:{start}").partition(":")
    if not (colon and number.isdecimal() and int(number) < len(cluster.engines)):
        raise _no_cursor()
    at = int(number)
    end, *found = await cluster.at(at, call.but(cursor=cursor or None))
    onward = f"{at}:{replies.text(end)}"
    if replies.text(end) == start:
        onward = f"{at + 1}:{start}" if at + 1 < len(cluster.engines) else start
    if call.operation == "audit":
        found = [_bytes(f"partition {at}: {replies.text(problem)}") for problem in found]
    return [_bytes(onward), *found]


PAGES: Mapping[str, Callable[[Cluster, Call], Any]] = {
    "tags": tags, "jobs": interleaved, "trail": interleaved, "usage": in_turn, "audit": in_turn,
    **dict.fromkeys(_LISTINGS, by_name),
}  # fmt: skip
