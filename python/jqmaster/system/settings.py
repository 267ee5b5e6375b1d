"""Settings: what is the same in all partitions of a system. A change goes from one version of them to the next; which
changes come first partition 0 says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, JQError, NotFound, PartitionsAway, Stale, Unavailable
from jqmaster.system import merging
from jqmaster.system.bringing import bring_to, front
from jqmaster.system.calls import all_of
from jqmaster.system.moving import bring_schedule
from jqmaster.system.partitions import Call, Partitions, Way
from jqmaster.system.routing import check_place, is_spec, needs_place, unpacked
from jqmaster.system.settled import following, rank
from jqmaster.wire.operations import GOES_BY, going

_REMOVING = ("unsubscribe", "unconstrain", "revoke", "forget")
_TRIES = 50  # of which each is one more change that another makes at the same moment
_AGAIN_S = 0.05
_ADDED = ("running", "starts", "held", "lanes")  # of a constraint
_OF_ONE = ("share", "opens_ms", "next")

_Move = tuple[str, str]
"""From which version of settings to which."""


async def _everywhere(system: Partitions, call: Call) -> Any:
    """Partition 0 first, then all others at once; its reply. Repeating completes what some did not get."""
    return (await change(system, call))[0]


async def change(system: Partitions, call: Call) -> list[Any]:
    """A change of settings: the answers. Partition 0 moves to the next version with it, then the others do. One that
    has missed another change is brought in line first. Raises what ``carried`` does."""
    if "settings" in call.spec:  # it is for one version alone
        return await carried(system, call)
    for _ in range(_TRIES):
        try:
            version = await front(system)
            return await carried(system, call, (version, following(version)))
        except Stale:  # another change was quicker
            await asyncio.sleep(_AGAIN_S * random.random())
    raise Unavailable("others change settings all the time: repeat it")


async def carried(
    system: Partitions, call: Call, move: _Move | None = None, told: Callable[[Any], Call] | None = None
) -> list[Any]:
    """The answers. What the others are ``told`` is made from the first's answer. What is to be removed need not be
    everywhere. Raises Unavailable, which names those that did not answer, once all others are through; Stale where
    partition 0 has another version than the one to ``move`` from."""
    engines = list((await system.live()).values())
    first = await _asked(engines[0], call, move)
    if move and not isinstance(first, NotFound):
        system.settled.heard(move[1])
    else:
        move = None
    call = told(first) if told else call

    async def ask(engine: Engine) -> Any:
        answer = await _asked(engine, call, move, is_first=False)
        if move is None or not isinstance(answer, Stale | NotFound):
            return answer
        return await _completed(system, engines[0], engine, call, move)

    answers = [first, *await asyncio.gather(*map(ask, engines[1:]), return_exceptions=True)]
    while more := await system.come_since(engines):
        answers += await asyncio.gather(*map(ask, more), return_exceptions=True)
        engines = [*engines, *more]
    _check(engines, answers)
    found = [one for one in answers if not isinstance(one, NotFound | Stale)]
    if not found:
        raise first
    return found


async def _asked(engine: Engine, call: Call, move: _Move | None, *, is_first: bool = True) -> Any:
    """The answer, also that there is nothing to remove, or of one that is not the first that it is of another
    version."""
    # Of what is no spec the script says what is wrong.
    versions = {"settings": move} if move is not None and call.arguments and is_spec(call.arguments[0]) else {}
    try:
        return await call.at(engine, **versions)
    except NotFound as problem:
        if call.operation not in _REMOVING:
            raise
        return problem
    except Stale as problem:
        if move and problem.message == move[1] != move[0]:  # it was carried out, and the answer was lost
            answer = await _asked(engine, call, (move[1], move[1]), is_first=is_first)
            return 1 if isinstance(answer, NotFound) else answer
        if is_first:
            raise
        return problem


async def _completed(system: Partitions, first: Engine, engine: Engine, call: Call, move: _Move) -> Any:
    """Of a partition that has missed a change before: in line with the first it is where that is."""
    for _ in range(_TRIES):
        answer = await _asked(engine, call, (move[1], move[1]), is_first=False)
        if not isinstance(answer, Stale) or rank(answer.message) > rank(move[1]):
            return answer
        with suppress(Stale):  # somebody else brings it in line, too
            await bring_to(system, engine, first)
            continue
        await asyncio.sleep(_AGAIN_S * random.random())
    raise Unavailable(f"others bring {engine.namespace} in line all the time")


def _check(engines: Sequence[Engine], answers: Sequence[Any]) -> None:
    """Raise what is wrong with the answers of partitions; in how many a change is applied where some are silent."""
    silent = [engine.namespace for engine, one in zip(engines, answers, strict=True) if isinstance(one, Unavailable)]
    for engine, one in zip(engines, answers, strict=True):
        if isinstance(one, BaseException) and not isinstance(one, Unavailable | NotFound | Stale):
            if isinstance(one, JQError):
                one.message += f" (in {engine.namespace}; others have it)"
            raise one
    if silent:
        applied = f"applied in {len(engines) - len(silent)} of {len(engines)} partitions"
        cause = next(one for one in answers if isinstance(one, Unavailable))
        raise PartitionsAway(f"{applied}; {', '.join(silent)} did not answer: repeat it", cause.cause) from cause


async def _config(system: Partitions, call: Call) -> Any:
    """What is asked for is told as partition 0 has it."""
    if call.spec.keys() & {"set", "unset"}:
        return await _everywhere(system, call)
    return await system.root_or_another(call.at)


async def _queue(system: Partitions, call: Call) -> Any:
    """The document is that of all."""
    if call.spec.keys() <= {"name", "actor"}:  # a look
        answers = await carried(system, call)
    else:
        answers = await change(system, call)
    return msgpack.packb(merging.queue([replies.plain_document(one) for one in answers]))


async def _forget(system: Partitions, call: Call) -> Any:
    """Partitions that have jobs of the queue are asked first: they refuse."""
    engines = list((await system.live()).values())
    name: Any = call.spec.get("queue")
    with suppress(Invalid):  # of a name that cannot be, which is refused below
        for engine, page in zip(engines, await all_of(one.queues([name]) for one in engines), strict=True):
            facts = [fact for document in page.documents for fact in document.items()]
            if any(type(count) is int and count for field, count in facts if field != "max_waiting"):
                await call.at(engine)
    return await _everywhere(system, call)


async def _mark(system: Partitions, call: Call) -> Any:
    """The moment is that of partition 0, so that it is one mark."""

    def told(first: Any) -> Call:
        return call.changed(time_ms=replies.plain_document(first)["time_ms"]) if isinstance(first, bytes) else call

    return (await carried(system, call, told=told))[0]


async def _home(system: Partitions, call: Call) -> Any:
    """At the home of what the spec names; a schedule is brought there before."""
    name = str(call.spec.get(GOES_BY[call.operation], ""))
    home = await system.home(name)
    if call.operation in ("schedule", "unschedule"):
        await bring_schedule(system, name)
    return await call.at(home)


# -- limits: each partition has the constraint, and a share of it (module ``balance``), or all jobs of a key are in one
# partition by routes (module ``routing``)


async def _constrain(system: Partitions, call: Call) -> Any:
    """In partition 0 first, which refuses what is wrong; then in all others."""
    engines, record = await system.known()
    is_shared = needs_place(call.spec) is None
    if not is_shared:
        await _check_place(engines[0], call, record.routes)
    is_refused = not isinstance(call.spec.get("shared"), bool | None)
    answers = await change(system, call if is_refused else call.changed(shared=is_shared))
    documents = [replies.plain_document(each) for each in answers]
    sums = {name: sum(each.get(name, 0) for each in documents) for name in _ADDED if name in documents[0]}
    keys = max(each["keys"] for each in documents)
    return msgpack.packb({**{k: v for k, v in documents[0].items() if k not in _OF_ONE}, **sums, "keys": keys})


async def _check_place(first: Engine, call: Call, routes: Mapping[str, str]) -> None:
    """What else is wrong with it is said first, as partition 0 says it, where it could not be shared either."""
    try:
        check_place(call.spec, unpacked(call.arguments[1]) if len(call.arguments) > 1 else None, routes)
    except Invalid as problem:
        try:
            await call.at(first, shared=True)
        except Invalid as refusal:
            if "that the partitions of a system share" not in refusal.message:
                raise
        raise problem


async def _hold(system: Partitions, call: Call) -> Any:
    """The latest of the moments until which partitions start nothing. It passes, and is no version of settings."""
    return max(await carried(system, call))


WAYS: Mapping[str, Way] = {
    **dict.fromkeys(going("settings", "limits"), _everywhere),
    **dict.fromkeys(going("home"), _home),
    "config": _config,
    "constrain": _constrain,
    "forget": _forget,
    "hold": _hold,
    "mark": _mark,
    "queue": _queue,
}
