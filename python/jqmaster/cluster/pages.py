"""Listings over the partitions of a cluster: in order, and each thing once."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from jqmaster.cluster.merging import LISTINGS, merged
from jqmaster.cluster.partitions import Call, Partitions, all_of
from jqmaster.engine import replies
from jqmaster.errors import Invalid
from jqmaster.manifest.manifest import operations

_COUNT = 100  # of a page that does not say
_MOST_TAGS = 1000
_IN_ALL = ("all", "constrain")  # what goes to all partitions alike: the first one's trail tells of it


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


async def by_name(cluster: Partitions, call: Call) -> Any:
    """A page in order of name. Its cursor is the last name, which any partition goes on behind."""
    listing = LISTINGS[call.operation]
    pages = await cluster.everywhere(call)
    found: dict[str, list[bytes]] = {}
    for page in pages:
        # Once each: who names one twice is told of it twice by each partition.
        for name, blob in {_name(blob, listing.names): blob for blob in page[1:]}.items():
            found.setdefault(name, []).append(blob)
    wanted = call.spec.get(listing.asked)
    names = [wanted] if isinstance(wanted, str) else wanted
    cursor, shown = ("", [name for name in names if name in found]) if names else _cut(found, pages, call)
    return [_bytes(cursor), *(merged(call.operation, found[name]) for name in shown)]


def _name(blob: bytes, fields: Sequence[str]) -> str:
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


async def tags(cluster: Partitions, call: Call) -> Any:
    """Counts of the same tag add up. Of the most used ones a thousand of each partition are looked at."""
    top = call.spec.get("top")
    pages = await cluster.everywhere(call.but(top=_MOST_TAGS) if type(top) is int and top > 0 else call)
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({replies.text(tag): count for tag, count in page[1:]})
    cursor, shown = _cut(counts, pages, call) if top is None else ("", [tag for tag, _ in counts.most_common(top)])
    return [_bytes(cursor), *([_bytes(tag), counts[tag]] for tag in shown)]


async def interleaved(cluster: Partitions, call: Call) -> Any:
    """Jobs, or the trail: a page has as many of each partition, by age. The cursor has that of each that has more."""
    cursors = _cursors(call.spec.get("cursor"), len(cluster.engines))
    count = call.spec.get("count")
    most = count if type(count) is int and count > 0 else _COUNT
    asked = list(cursors)[:most]
    share = most // len(asked) if count in (None, most) else count  # what is no count is refused

    async def ask(number: int) -> Any:
        return await cluster.at(number, call.but(cursor=cursors.pop(number) or None, count=share))

    pages = dict(zip(asked, await all_of(map(ask, asked)), strict=True))
    looked = [page.pop(1) for page in pages.values()] if call.spec.get("looked") is True else []
    shown = [one for number, page in pages.items() for one in page[1:] if not (number and _is_of_all(call, one))]
    newest = call.operation == "trail" or call.spec.get("newest")
    shown.sort(key=lambda one: _age(replies.document(one)), reverse=bool(newest))
    onward = cursors | {number: replies.text(page[0]) for number, page in pages.items() if page[0]}
    cursor = base64.urlsafe_b64encode(msgpack.packb(onward)) if onward else b""
    return [cursor, *([sum(looked)] if looked else []), *shown]


def _is_of_all(call: Call, entry: bytes) -> bool:
    what = operations().get(replies.plain_value(entry)["what"]) if call.operation == "trail" else None
    return what is not None and what.over in _IN_ALL


def _age(document: replies.Document) -> int:
    return int(document["time_ms"]) if "time_ms" in document else int(replies.text(document["id"])[:14], 16)


def _cursors(cursor: Any, count: int) -> dict[int, str]:
    if cursor is None or cursor == "":
        return dict.fromkeys(range(count), "")
    try:
        found: dict[int, str] = msgpack.unpackb(base64.urlsafe_b64decode(cursor), strict_map_key=False)
        if found and found.keys() <= set(range(count)):
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
