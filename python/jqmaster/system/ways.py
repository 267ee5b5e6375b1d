"""What the ways of operations over partitions share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid
from jqmaster.system.picking import Picking
from jqmaster.system.record import System
from jqmaster.system.routing import unpacked
from jqmaster.system.settled import Settled
from jqmaster.system.slots import Slots

T = TypeVar("T")

COUNT = 100  # of a page, unless told


class Partitions(Protocol):
    """What ways need of `SystemEngine`, which has them."""

    root: str
    record: System | None
    picking: Picking
    rooms: Slots
    settled: Settled

    async def partitions(self) -> Sequence[Engine]: ...

    async def live(self) -> dict[int, Engine]: ...

    async def everywhere(self, ask: Callable[[Engine], Awaitable[T]]) -> list[T]: ...

    async def perhaps(self, number: int, ask: Callable[[Engine], Awaitable[T]]) -> T | None: ...

    async def root_or_another(self, ask: Callable[[Engine], Awaitable[T]]) -> T: ...

    async def look(self, number: int = 0) -> bool: ...

    async def of(self, job_id: Argument, path: str = "id") -> Engine: ...

    async def by_spec_ids(self, operation: str, arguments: Sequence[Argument]) -> Any: ...

    async def grouped(
        self, ids: Sequence[Argument], ask: Callable[[Engine, list[int]], Awaitable[Any]], path: str
    ) -> list[Any]: ...


Way = Callable[[Partitions, str, Sequence[Argument]], Awaitable[Any]]


def not_yet(what: str) -> Invalid:
    """What is refused, by name."""
    return Invalid(f"{what} is not possible over the partitions of a system yet: ask one of them by its namespace")


async def come_since(system: Partitions, known: Sequence[Engine]) -> list[Engine]:
    """The partitions that joined while all ``known`` ones were asked. Who adds some has them known before it copies
    what is set in all: so either it copies what was set, or they are found here."""
    await system.look()
    return [one for one in (await system.live()).values() if one not in known]


def spec_of(arguments: Sequence[Argument]) -> Spec:
    """The spec of a call that begins with one."""
    return unpacked(arguments[0]) if arguments else {}


async def all_of(asked: Iterable[Awaitable[T]]) -> list[T]:
    """All answers. Raises the first problem, once all are through."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for one in answers:
        if isinstance(one, BaseException):
            raise one
    return [one for one in answers if not isinstance(one, BaseException)]


def place_of(cursor: Any, live: Mapping[int, Engine]) -> tuple[int, str]:
    """The number of a partition, and the cursor within it. Raises Invalid. One that is no more since is passed over."""
    number, _, rest = ("0:" if cursor is None or cursor == "" else replies.text(cursor)).partition(":")
    if not number.isascii() or not number.isdigit() or int(number) > max(live):
        raise Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")
    at = int(number)
    return (at, rest) if at in live else (next_of(at, live) or max(live), "")


def next_of(number: int, live: Mapping[int, Engine]) -> int | None:
    """The number of the partition behind another; None behind the last."""
    return min((one for one in live if one > number), default=None)
