"""Constraints of a system: each partition has them, and a share of each (module ``balance``), or all jobs of a key are
in one partition by routes (module ``routes``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid
from jqmaster.system.routes import check_place, needs_place
from jqmaster.system.routing import unpacked
from jqmaster.system.settings import carried, change
from jqmaster.system.ways import Partitions

_ADDED = ("running", "starts", "held", "lanes")
_OF_ONE = ("share", "opens_ms", "next")


async def constrain(engine: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """In partition 0 first, which refuses what is wrong; then in all others."""
    first = next(iter((await engine.live()).values()))
    assert engine.record is not None
    spec = unpacked(arguments[0])
    is_shared = needs_place(spec) is None
    if not is_shared:
        await _check_place(first, spec, arguments, engine.record.routes)
    if isinstance(spec.get("shared"), bool | None):  # else it is refused
        spec["shared"] = is_shared
    answers = await change(operation, engine, [pack(spec), *arguments[1:]])
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
    return (await change(operation, engine, arguments))[0]


async def hold(engine: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """The latest of the moments until which partitions start nothing. It passes, and is no version of settings."""
    return max(await carried(operation, engine, lambda _: arguments))
