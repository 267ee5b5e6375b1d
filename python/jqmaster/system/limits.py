"""Constraints of a system: each partition has them, and a share of each (module ``balance``), or all jobs of a key are
in one partition by routes (module ``routes``)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, JQError, NotFound
from jqmaster.system.routes import check_place, needs_place
from jqmaster.system.routing import unpacked
from jqmaster.system.ways import Partitions, come_since

_ADDED = ("running", "starts", "held", "lanes")
_OF_ONE = ("share", "opens_ms", "next")


async def constrain(engine: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """In partition 0 first, which refuses what is wrong; then in all others."""
    engines = list((await engine.live()).values())
    assert engine.record is not None
    spec = unpacked(arguments[0])
    is_shared = needs_place(spec) is None
    if not is_shared:
        await _check_place(engines[0], spec, arguments, engine.record.routes)
    if isinstance(spec.get("shared"), bool | None):  # else it is refused
        spec["shared"] = is_shared
    told = [pack(spec), *arguments[1:]]
    one = await engines[0].call(operation, *told)
    answers = [one, *await _everywhere(engine, engines, 1, operation, told)]
    _check(answers)
    documents = [replies.plain_document(each) for each in answers]
    sums = {name: sum(each.get(name, 0) for each in documents) for name in _ADDED if name in documents[0]}
    keys = max(each["keys"] for each in documents)
    return msgpack.packb({**{k: v for k, v in documents[0].items() if k not in _OF_ONE}, **sums, "keys": keys})


async def _check_place(first: Engine, spec: Spec, arguments: Sequence[Argument], routes: Mapping[str, str]) -> None:
    """What else is wrong with it is said first, as partition 0 says it, where it could not be shared either."""
    try:
        check_place(spec, unpacked(arguments[1]) if len(arguments) > 1 else None, routes)
    except Invalid as problem:
        try:
            await first.call("constrain", pack({**spec, "shared": True}), *arguments[1:])
        except Invalid as refusal:
            if "that the partitions of a system share" not in refusal.message:
                raise
        raise problem


async def unconstrain(engine: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Where it is gone already, as after a call that broke off, there is nothing to do."""
    answers = await _everywhere(engine, list((await engine.live()).values()), 0, operation, arguments)
    gone = [one for one in answers if isinstance(one, NotFound)]
    if len(gone) == len(answers):
        raise gone[0]
    _check([1 if isinstance(one, NotFound) else one for one in answers])
    return 1


async def hold(engine: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """The latest of the moments until which partitions start nothing."""
    answers = await _everywhere(engine, list((await engine.live()).values()), 0, operation, arguments)
    _check(answers)
    return max(answers)


async def _everywhere(
    system: Partitions, engines: Sequence[Engine], first: int, operation: str, arguments: Sequence[Argument]
) -> list[Any]:
    """Of all from the ``first`` on, and those that join meanwhile."""
    answers: list[Any] = []
    asked = engines[first:]
    while asked:
        answers += await asyncio.gather(*(one.call(operation, *arguments) for one in asked), return_exceptions=True)
        asked = await come_since(system, engines)
        engines = [*engines, *asked]
    return answers


def _check(answers: Sequence[Any]) -> None:
    """Raise the first problem. Where some partitions have done their part it says so: repeat the call then."""
    problems = [one for one in answers if isinstance(one, BaseException)]
    if not problems:
        return
    if isinstance(problem := problems[0], JQError) and len(problems) < len(answers):
        problem.message += f" (applied in {len(answers) - len(problems)} of {len(answers)} partitions)"
    raise problems[0]
