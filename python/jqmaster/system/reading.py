"""Listings over the partitions of a system: merged, so that each thing is told once."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid, NotFound
from jqmaster.system import merging
from jqmaster.system.calls import all_of
from jqmaster.system.partitions import COUNT, Call, Partitions, Way, next_of, place_of
from jqmaster.wire.operations import GOES_BY, going

_MINUTE_MS = 60_000
_MOST_TAGS = 1000  # in a reply
_SET_IN_ALL = going("settings", "limits")
_IN_TURN = 16  # partitions that a page of jobs asks
Merge = Callable[[Sequence[Document]], Document]


def _first(each: Sequence[Document]) -> Document:
    return each[0]


@dataclass(frozen=True)
class _Listing:
    """``named``: the field of a spec that names some instead of a page. ``merge``: of several of the same key.
    ``key``: by what its documents are in order, as text that its cursors have, where that is no field of the table.
    ``newest_first``: it goes down."""

    named: str = ""
    merge: Merge = _first
    key: Callable[[Document], str] | None = None
    newest_first: bool = False


def _by(name: str) -> Callable[[Document], str]:
    return lambda document: replies.text(document[name])


def _pair(document: Document) -> str:
    queue, name = document["queue"], document["name"]
    return f"{queue}\0{'' if name == queue else name}"


_LISTINGS = {
    "queues": _Listing("names", merging.queue),
    "constraints": _Listing("ids", merging.constraint),
    "schedules": _Listing("ids"),
    "keys": _Listing(merge=merging.key),
    "workers": _Listing("ids", merging.worker),
    "failures": _Listing("group", merging.failures),
    "marks": _Listing(key=lambda mark: f"{mark['time_ms']:014x}{mark['text']}", newest_first=True),
}
_SERIES = _Listing(merge=merging.statistics, key=_pair)


def _order(key: str) -> bytes:
    return key.encode(errors="surrogatepass")


async def _listed(system: Partitions, call: Call) -> Any:
    """A page in the order of one namespace's."""
    of = _LISTINGS.get(call.operation, _Listing())
    cursor, groups = await _page(system, call, of)
    # What a partition alone has stays as it came.
    return [cursor, *(one[0] if len(one) == 1 else _packed(of.merge(_plain(one))) for one in groups)]


async def _page(system: Partitions, call: Call, of: _Listing) -> tuple[str, list[list[bytes]]]:
    """The cursor, and the documents of each key."""
    pages = await system.everywhere(call.at)
    found: dict[str, list[bytes]] = {}
    key_of = of.key or _by(GOES_BY[call.operation])
    for page in pages:
        # Once each: who names one twice is told of it twice by each partition.
        for key, packed in {key_of(replies.document(packed)): packed for packed in page[1:]}.items():
            found.setdefault(key, []).append(packed)
    named = call.spec.get(of.named)
    if named is not None:
        names = [named] if isinstance(named, str) else named
        return "", [found[name] for name in names if name in found]
    cursor, shown = _cut(found, pages, call.spec, newest_first=of.newest_first)
    return cursor, [found[key] for key in shown]


def _cut(keys: Iterable[str], pages: Sequence[Any], spec: Spec, *, newest_first: bool = False) -> tuple[str, list[str]]:
    """The cursor, and what a page has of the keys that pages of partitions have."""
    order = sorted(keys, key=_order, reverse=newest_first)
    ends = sorted((replies.text(page[0]) for page in pages if page[0]), key=_order, reverse=newest_first)
    if ends:
        # What lies behind the end of a partition's page is not known of it.
        end = _order(ends[0])
        order = [key for key in order if (_order(key) >= end if newest_first else _order(key) <= end)]
    shown = order[: spec.get("count") or COUNT]
    return shown[-1] if len(shown) < len(order) else next(iter(ends), ""), shown


def _plain(packed: Sequence[bytes]) -> list[Document]:
    return [replies.plain_document(one) for one in packed]


def _packed(document: Any) -> bytes:
    packed: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    return packed


async def _queues(system: Partitions, call: Call) -> Any:
    """How long jobs of several partitions waited and ran comes of histograms, which a queue's document has not."""
    cursor, groups = await _page(system, call, _LISTINGS[call.operation])
    reply: list[Any] = [cursor, *(one[0] for one in groups)]
    lacking: dict[int, Document] = {}
    for place, packed in enumerate(groups, 1):
        if len(packed) > 1:
            each = _plain(packed)
            merged = merging.queue(each)
            reply[place] = _packed(merged)
            if sum(bool(one.get("recent", {}).keys() & {"wait", "run"}) for one in each) > 1:
                lacking[place] = merged
    if lacking:
        from_ms = (int(time.time() * 1000) // _MINUTE_MS - call.spec["minutes"] + 1) * _MINUTE_MS
        asked = [{"by": "minute", "queue": one["name"], "from_ms": from_ms} for one in lacking.values()]
        calls = [("stats", [pack(one)]) for one in asked]
        answers = await system.everywhere(lambda engine: engine.pipeline(calls))
        for (place, queue), *told in zip(lacking.items(), *answers, strict=True):
            buckets = _plain([packed for buckets in told for packed in buckets])
            if buckets:
                sums = merging.brief(merging.statistics(buckets))
                queue["recent"] |= {name: sums[name] for name in ("wait", "run")}
                reply[place] = _packed(queue)
    return reply


async def _stats(system: Partitions, call: Call) -> Any:
    """Counts and histograms add up, exactly; percentiles come of the sum."""
    spec = call.spec
    is_brief = spec.get("brief") is True
    rest = {name: value for name, value in spec.items() if name != "brief"}
    asked = Call(call.operation, [pack(rest)]) if is_brief else call

    def shown(packed: Sequence[bytes]) -> bytes:
        merged = merging.statistics(_plain(packed))
        return _packed(merging.brief(merged) if is_brief else merged)

    if spec.get("series"):
        cursor, groups = await _page(system, asked, _SERIES)
        return [cursor, *map(shown, groups)]
    found: dict[int, list[bytes]] = {}
    for buckets in await system.everywhere(asked.at):
        for packed in buckets:
            found.setdefault(replies.plain_document(packed)["begin_ms"], []).append(packed)
    return [shown(found[begin_ms]) for begin_ms in sorted(found)]


async def _tags(system: Partitions, call: Call) -> Any:
    """Counts of the same tag add up. For the most used of all, all of them are looked at where a reply cannot have
    those of a partition."""
    spec = call.spec
    counts = Counter[str]()
    if type(top := spec.get("top")) is not int or len(spec) > 1 or not 1 <= top <= _MOST_TAGS:
        pages = await system.everywhere(call.at)
        _count(counts, pages)
        cursor, shown = _cut(counts, pages, spec)
        return [cursor, *([tag, counts[tag]] for tag in shown)]

    async def counted(engine: Engine) -> None:
        page = await call.at(engine, top=_MOST_TAGS)
        if len(page) <= _MOST_TAGS:
            _count(counts, [page])
            return
        cursor = ""
        while True:
            page = await engine.call(call.operation, pack({"cursor": cursor, "count": _MOST_TAGS}))
            _count(counts, [page])
            cursor = replies.text(page[0])
            if not cursor:
                return

    await system.everywhere(counted)
    # Of equally used ones the later in order comes first, as in a sorted set that is read backwards.
    order = sorted(counts, key=lambda tag: (counts[tag], _order(tag)), reverse=True)
    return ["", *([tag, counts[tag]] for tag in order[:top])]


def _count(counts: Counter[str], pages: Sequence[Any]) -> None:
    for page in pages:
        for tag, count in page[1:]:
            counts[replies.text(tag)] += count


async def _trail(system: Partitions, call: Call) -> Any:
    """Newest first. The cursor has that of each partition which has more. What was set in all stands in the trail of
    each, and is told as partition 0 has it."""
    spec = call.spec
    engines = await system.live()
    cursors = _cursors(spec.get("cursor"), engines)
    count = COUNT if spec.get("count") is None else spec["count"]

    async def asked(number: int, most: Any) -> Any:
        return await call.at(engines[number], cursor=cursors[number], count=most)

    pages = dict(zip(cursors, await all_of(asked(number, count) for number in cursors), strict=True))
    told = (
        [(entry, number, packed) for packed, entry in zip(page[1:], _plain(page[1:]), strict=True)]
        for number, page in pages.items()
    )
    # Entries of a partition stay in their order, although its clock may have been set back.
    taken = list(islice(heapq.merge(*told, key=lambda one: -int(one[0]["time_ms"])), count))
    used = Counter(one[1] for one in taken)
    following: dict[int, str] = {}
    for number, page in pages.items():
        if used[number] == len(page) - 1:
            end = replies.text(page[0])
            following |= {number: end} if end else {}
        elif used[number]:
            following[number] = replies.text((await asked(number, used[number]))[0])
        else:
            following[number] = cursors[number]
    shown = [packed for entry, number, packed in taken if not number or entry["what"] not in _SET_IN_ALL]
    return [";".join(f"{number}:{cursor}" for number, cursor in following.items()), *shown]


def _cursors(cursor: Any, live: Mapping[int, Engine]) -> dict[int, str]:
    if cursor is None or cursor == "":
        return dict.fromkeys(live, "")
    try:
        found = {int(number): rest for number, _, rest in (one.partition(":") for one in cursor.split(";"))}
    except (ValueError, AttributeError):
        found = {-1: ""}
    if not all(0 <= number <= max(live) for number in found):
        raise Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")
    return {number: rest for number, rest in found.items() if number in live}


async def _in_turn(system: Partitions, call: Call) -> Any:
    """One partition after the other, whose number the cursor begins with. A page goes on to the next until it is full,
    or has asked so many. Those that know no such constraint are passed over, unless none knows it."""
    spec = call.spec
    live = await system.live()
    at: int | None
    at, cursor = place_of(spec.get("cursor"), live)
    most = spec.get("count") or COUNT
    found: list[bytes] = []
    looked: list[int] = []
    is_known, is_first, turns = False, not spec.get("cursor"), 0
    while turns < _IN_TURN:
        left = {"count": most - len(found)} if found else {}
        following, reply = next_of(at, live), None
        try:
            reply = await system.perhaps(at, partial(call.at, cursor=cursor, **left))
            is_known, turns = True, turns + 1
        except NotFound:
            if following is None and is_first and not is_known:
                raise
        end, *documents = reply or [b""]
        if documents and isinstance(documents[0], int):
            looked.append(documents.pop(0))
        found += documents
        cursor = replies.text(end)
        at = at if cursor else following
        if cursor or at is None or len(found) >= most:
            break
    onward = "" if at is None else f"{at}:{cursor}"
    return [onward, *([sum(looked)] if looked else []), *found]


async def _audit(system: Partitions, call: Call) -> Any:
    """One partition after the other; what is wrong begins with its number."""
    spec = call.spec
    live = await system.live()
    told = spec.get("cursor")
    if told is not None and (not isinstance(told, str) or not told):
        return await call.at(live[0])  # which refuses it
    number, _, cursor = ("0" if told is None else told).rpartition(":")
    at = int(number) if number.isascii() and number.isdigit() else 0
    if at not in live:
        raise Invalid("expected a cursor as the last reply gave it", "cursor")
    end, *problems = await call.at(live[at], cursor=cursor)
    following = next_of(at, live)
    is_over = end == b"0" and following is None
    onward = f"{following}:0" if end == b"0" else f"{at}:{replies.text(end)}"
    return ["0" if is_over else onward, *(f"partition {at}: {replies.text(one)}" for one in problems)]


async def _tick(system: Partitions, call: Call) -> Any:
    """Each does what is due: the earliest next moment, and all steps."""
    answers = await system.each(call)
    moments = [next_ms for next_ms, _ in answers if next_ms >= 0]
    return [min(moments, default=-1), sum(moved for _, moved in answers)]


async def _touch(system: Partitions, call: Call) -> Any:
    return max(await system.each(call))


async def _bulks(system: Partitions, call: Call) -> Any:
    """Those of all partitions, the latest first."""
    answers = await system.everywhere(call.at)
    found = [packed for answer in answers for packed in answer]
    return sorted(found, key=lambda packed: str(replies.plain_document(packed)["id"]), reverse=True)


async def _root(system: Partitions, call: Call) -> Any:
    """What all have alike is told as partition 0 has it."""
    return await system.root_or_another(call.at)


WAYS: Mapping[str, Way] = {
    **dict.fromkeys(going("merged"), _listed),
    **dict.fromkeys(going("turn"), _in_turn),
    **dict.fromkeys(going("root"), _root),
    "audit": _audit,
    "bulks": _bulks,
    "queues": _queues,
    "stats": _stats,
    "tags": _tags,
    "tick": _tick,
    "touch": _touch,
    "trail": _trail,
}
