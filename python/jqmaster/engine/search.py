"""One search over all that has a name, and over arguments of jobs: a few of each kind, made of the reads that there
are. It looks at a bounded number of each, and says where there may be more."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from operator import itemgetter
from typing import Any

from jqmaster.connection import plainly
from jqmaster.engine.operations import CallsByName
from jqmaster.engine.queryline import where_of
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import Invalid

MOST = 20
LONGEST = 255
_PAGE = 1000
_PAGES = 4
_STEPS = 5  # pages of a search in arguments
_DAYS_MS = 8 * 86_400_000
_ID = re.compile(r"[0-9a-f]{14}(?:[0-9a-f]{2})?")


class SearchCalls(CallsByName):
    """For people who look for something, and know a part of its name."""

    async def search(self, text: str, *, count: int = 5) -> Document:
        """``{queues, names, workers, constraints, schedules, tags, groups, jobs, more, looked}``: of each kind up to
        ``count`` (at most 20) whose name contains ``text``, those first that begin so. Of ``workers`` maps ``{id,
        name}``; of ``jobs`` brief documents: the one with this id, and those that the line ``text`` describes
        (``engine.queryline``). ``more``: the kinds of which there may be others. ``looked``: how many jobs were looked
        at. Raises Invalid.
        """
        wanted = text.strip()
        count = max(1, min(count, MOST))
        if not wanted or len(wanted.encode("utf-8", "surrogateescape")) > LONGEST:
            raise Invalid(f"expected text of 1 to {LONGEST} bytes", "q")
        from_ms = round(time.time() * 1000) - _DAYS_MS
        listed: dict[str, AsyncIterator[Any]] = {
            "queues": self._queues(wanted),
            "names": _each(partial(self.stats, by="day", series=True, from_ms=from_ms), itemgetter("name")),
            "workers": _each(self.workers, _worker),
            "constraints": _each(self.constraints, itemgetter("id")),
            "schedules": _each(self.schedules, itemgetter("id")),
            "tags": self._tags(),
            "groups": _each(self.failures, itemgetter("group")),
        }
        (jobs, looked, are_more), *named = await plainly.gather(
            self._matching(wanted, count), *(_found(one, wanted, count) for one in listed.values())
        )
        found = dict(zip(listed, named, strict=True))
        more = [kind for kind, (_, is_cut) in found.items() if is_cut] + (["jobs"] if are_more else [])
        return {**{kind: hits for kind, (hits, _) in found.items()}, "jobs": jobs, "more": more, "looked": looked}

    async def _queues(self, text: str) -> AsyncIterator[Any]:
        """The first ones. Where that are not all, also those that begin so, which are found by their order."""
        async for name in _each(self.queues, itemgetter("name")):
            yield name
            if name is None:
                for page in await plainly.gather(self.queues(names=[text]), self.queues(cursor=text, count=MOST)):
                    for one in page.documents:
                        yield one["name"]

    async def _tags(self) -> AsyncIterator[Any]:
        cursor, found, _ = await self.tags(count=1000)
        for tag, _ in found:
            yield tag
        if cursor:
            yield None

    async def _matching(self, text: str, count: int) -> tuple[list[Document], int, bool]:
        """(documents, jobs looked at, whether there may be more)"""
        found: list[Document] = []
        if _ID.fullmatch(text):
            found = [_brief(one) for one in await self.get([text]) if one is not None]
            if found:
                return found, 1, False
        cursor, looked = None, 0
        where = where_of(text, round(time.time() * 1000))
        for _ in range(_STEPS):
            left = count - len(found)
            page = await self.jobs(where, recent=True, brief=True, looked=True, cursor=cursor, count=left)
            found += page.documents
            cursor, looked = page.cursor or None, looked + (page.looked or 0)
            if not cursor or len(found) >= count:
                break
        return found, looked, bool(cursor)


async def _each(ask: Callable[..., Awaitable[Page]], name: Callable[[Document], Any]) -> AsyncIterator[Any]:
    """What stands in the first pages of a listing, which a call's budget may make short, and None where there is
    more."""
    cursor = None
    for _ in range(_PAGES):
        page = await ask(cursor=cursor, count=_PAGE)
        for one in page.documents:
            yield name(one)
        if not page.cursor:
            return
        cursor = page.cursor
    yield None


async def _found(names: AsyncIterator[Any], text: str, count: int) -> tuple[list[Any], bool]:
    """(those that fit, whether there may be more)"""
    wanted, has_more = text.casefold(), False
    hits: dict[tuple[bool, str], Any] = {}
    async for one in names:
        said = " ".join(one.values()) if isinstance(one, dict) else one or ""
        at = said.casefold().find(wanted)
        if one is None:
            has_more = True
        elif at >= 0:
            hits[at > 0, said] = one
    return [hits[said] for said in sorted(hits)[:count]], has_more or len(hits) > count


def _worker(one: Document) -> Document:
    return {"id": one["id"], "name": one["name"]}


def _brief(one: Document) -> Document:
    return {name: value for name, value in one.items() if name not in ("argument", "result", "error", "dependents")}
