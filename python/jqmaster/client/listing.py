"""What listings and changes of many have in common: pages in turn, ids in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from jqmaster.client.handle import Ids, ids_of
from jqmaster.engine import options
from jqmaster.engine.calling import given
from jqmaster.engine.options import Seconds, Where, known
from jqmaster.engine.replies import Document, Page

BATCH = 1000
PAGE = 1000


class Listing(Protocol):
    def __call__(self, *, cursor: str | None, count: int) -> Awaitable[Page]: ...


def in_seconds(duration: Seconds | None) -> float | None:
    return None if duration is None else options.seconds(duration)


async def each(ask: Listing, count: int = PAGE) -> AsyncIterator[Any]:
    page = await ask(cursor=None, count=count)
    while True:
        for document in page.documents:
            yield document
        if not page.cursor:
            return
        page = await ask(cursor=page.cursor, count=count)


async def all_of(ask: Listing, count: int = PAGE) -> list[Any]:
    return [row async for row in each(ask, count)]


async def documents(page: Awaitable[Page]) -> list[Document]:
    return (await page).documents


async def batched(call: Callable[[list[str]], Awaitable[Sequence[Any]]], ids: Ids) -> list[Any]:
    results: list[Any] = []
    wanted = ids_of(ids)
    for start in range(0, len(wanted), BATCH):
        results += await call(wanted[start : start + BATCH])
    return results


async def kick_all(kick: Callable[..., Awaitable[tuple[int, bool]]], delay: Seconds | None) -> int:
    """Take jobs from their workers until there are no more; how many."""
    total, more = 0, True
    while more:
        kicked, more = await kick(count=BATCH, delay=in_seconds(delay))
        total += kicked
    return total


def conditions(where: Where) -> dict[str, Any]:
    """`where` as the engine takes it. Raises TypeError for a condition that does not exist."""
    fields = given(**known(where, Where, "condition"))
    if not isinstance(fields.get("status", ""), str):
        fields["status"] = list(fields["status"])
    return fields
