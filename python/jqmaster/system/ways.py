"""What the ways of operations over partitions share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from jqmaster.engine.calls import Argument, Spec
from jqmaster.errors import Invalid
from jqmaster.system.routing import unpacked

T = TypeVar("T")

COUNT = 100  # of a page, unless told


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
