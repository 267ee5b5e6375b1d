"""What the ways of operations over partitions share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from jqmaster.engine.calls import Argument, Spec
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid
from jqmaster.system.record import System
from jqmaster.system.routing import unpacked

T = TypeVar("T")

COUNT = 100  # of a page, unless told


class Partitions(Protocol):
    """What ways need of `SystemEngine`, which has them."""

    root: str
    record: System | None

    async def partitions(self) -> Sequence[Engine]: ...

    async def of(self, job_id: Argument, path: str = "id") -> Engine: ...

    async def by_spec_ids(self, operation: str, arguments: Sequence[Argument]) -> Any: ...

    async def grouped(
        self, ids: Sequence[Argument], ask: Callable[[Engine, list[int]], Awaitable[Any]], path: str
    ) -> list[Any]: ...


Way = Callable[[Partitions, str, Sequence[Argument]], Awaitable[Any]]


def not_yet(what: str) -> Invalid:
    """What is refused, by name."""
    return Invalid(f"{what} is not possible over the partitions of a system yet: ask one of them by its namespace")


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
