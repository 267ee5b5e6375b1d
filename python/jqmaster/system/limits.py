"""Constraints of a system: each partition has them, and a share of each (module ``balance``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, pack
from jqmaster.errors import JQError, NotFound
from jqmaster.system.routing import unpacked

_ADDED = ("running", "starts", "held", "lanes")
_OF_ONE = ("share", "opens_ms", "next")


class Partitioned(Protocol):
    """What has partitions."""

    async def partitions(self) -> Sequence[Calling]:
        """The engine of each."""


async def constrain(engine: Partitioned, operation: str, arguments: Sequence[Argument]) -> Any:
    """In partition 0 first, which refuses what is wrong; then in all others."""
    first, *others = await engine.partitions()
    shared = [pack({**unpacked(arguments[0]), "shared": True}), *arguments[1:]]
    one = await first.call(operation, *shared)
    answers = await asyncio.gather(*(each.call(operation, *shared) for each in others), return_exceptions=True)
    _check([one, *answers])
    documents = [replies.plain_document(each) for each in (one, *answers)]
    sums = {name: sum(each.get(name, 0) for each in documents) for name in _ADDED if name in documents[0]}
    keys = max(each["keys"] for each in documents)
    return msgpack.packb({**{k: v for k, v in documents[0].items() if k not in _OF_ONE}, **sums, "keys": keys})


async def unconstrain(engine: Partitioned, operation: str, arguments: Sequence[Argument]) -> Any:
    """Where it is gone already, as after a call that broke off, there is nothing to do."""
    answers = await _everywhere(engine, operation, arguments)
    gone = [one for one in answers if isinstance(one, NotFound)]
    if len(gone) == len(answers):
        raise gone[0]
    _check([1 if isinstance(one, NotFound) else one for one in answers])
    return 1


async def hold(engine: Partitioned, operation: str, arguments: Sequence[Argument]) -> Any:
    """The latest of the moments until which partitions start nothing."""
    answers = await _everywhere(engine, operation, arguments)
    _check(answers)
    return max(answers)


async def _everywhere(engine: Partitioned, operation: str, arguments: Sequence[Argument]) -> list[Any]:
    asked = (each.call(operation, *arguments) for each in await engine.partitions())
    return await asyncio.gather(*asked, return_exceptions=True)


def _check(answers: Sequence[Any]) -> None:
    """Raise the first problem. Where some partitions have done their part it says so: repeat the call then."""
    problems = [one for one in answers if isinstance(one, BaseException)]
    if not problems:
        return
    if isinstance(problem := problems[0], JQError) and len(problems) < len(answers):
        problem.message += f" (applied in {len(answers) - len(problems)} of {len(answers)} partitions)"
    raise problems[0]
