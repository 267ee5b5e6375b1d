"""Jobs by their ids, and by their unique keys, over the partitions of a system."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, NotFound
from jqmaster.system.calls import ANSWER_S, all_of
from jqmaster.system.partitions import Partitions, Way, next_of, place_of, spec_of
from jqmaster.system.record import partition_of
from jqmaster.system.routes import value_of
from jqmaster.system.routing import unpacked
from jqmaster.wire import packform

_LOOKS = frozenset(("explain", "get", "history"))


async def _by_id(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Of one job, whose id is the argument."""
    return await _asked(system, await system.of(arguments[0]), operation, *arguments)


async def _asked(system: Partitions, engine: Engine, operation: str, *arguments: Argument) -> Any:
    """What a partition says. Who only looks does not wait for long where it may be away."""
    if not system.is_partial or operation not in _LOOKS:
        return await engine.call(operation, *arguments)
    number = list(await system.partitions()).index(engine)
    return await system.patiently(number, lambda one: one.call(operation, *arguments), ANSWER_S)


async def _explain(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """With the number of the job's partition."""
    reply = await _by_id(system, operation, arguments)
    return packform.extend_map(reply, {"partition": packform.pack(partition_of(arguments[0]))})


async def _depend(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Of one job, whose id is in the spec."""
    return await (await system.of(spec_of(arguments).get("id", ""))).call(operation, *arguments)


async def _by_ids(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """An argument for each job: its id."""

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await _asked(system, engine, operation, *(arguments[index] for index in indexes))

    return await system.grouped(arguments, ask, "ids")


async def _change(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Two arguments for each job: a spec with its id, a blob."""
    pairs = list(replies.pairs(list(arguments)))
    await _refuse_change(system, pairs)

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(operation, *(one for index in indexes for one in pairs[index]))

    return await system.grouped([unpacked(spec).get("id", "") for spec, _ in pairs], ask, "ids")


async def by_spec_ids(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """A spec with the ids of jobs, or with conditions, step by step."""
    spec = spec_of(arguments)
    await _refuse_queue(system, spec)
    if "where" in spec:
        return await _steps(system, operation, spec)
    ids = spec.get("ids")
    if not isinstance(ids, list) or not ids:  # the script says what is wrong
        return await (await system.partitions())[0].call(operation, *arguments)
    if spec.get("atomic") and len({partition_of(one) for one in ids}) > 1:
        raise Invalid("all or nothing is possible within one partition alone", "atomic")

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(operation, pack({**spec, "ids": [ids[index] for index in indexes]}))

    return await system.grouped(ids, ask, "ids")


async def _steps(system: Partitions, operation: str, spec: Spec) -> Any:
    """One partition after the other; the cursor begins with the number of the one that it is in."""
    live = await system.live()
    at, cursor = place_of(spec.get("cursor"), live)
    reply = await live[at].call(operation, pack({**spec, "cursor": cursor}))
    if following := replies.text(reply[0]):
        reply[0] = f"{at}:{following}"
    elif (behind := next_of(at, live)) is not None:
        reply[0] = f"{behind}:"
    return reply


async def _free(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """By the bucket of the unique key, and of where that was; where queues have routes, wherever it is."""
    engines, record = await system.known()
    key = str(spec_of(arguments).get("unique", ""))
    home, former = (engines[one.home(key)] for one in (record, record.before))
    others = [one for one in (await system.live()).values() if one is not home and (one is former or record.routes)]
    asked = (one.call(operation, *arguments) for one in (home, *others))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    problems = [one for one in answers if isinstance(one, BaseException)]
    for one in problems:
        if not isinstance(one, NotFound):
            raise one
    if len(problems) == len(answers):
        raise problems[0]
    return next(one for one in answers if not isinstance(one, BaseException))


async def _head(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Of one answer each, or none, the least."""
    return min(filter(None, await system.each(operation, arguments)), default=[])


# -- jobs of queues with a route stay where it led them --------------------------------------------------


async def _refuse_queue(system: Partitions, spec: Spec, path: str = "queue") -> None:
    """Raise Invalid for jobs that are to wait in a queue with a route from now on: who knows where they belong."""
    _, record = await system.known()
    queue = spec.get("queue")
    if isinstance(queue, str) and queue in record.routes:
        raise Invalid(f"jobs of {queue} have a route, which leads where they are enqueued", path)


async def _refuse_change(system: Partitions, pairs: Sequence[tuple[Argument, Argument]]) -> None:
    """Raise Invalid for a change of jobs, specs with arguments, to such a queue; or to an argument by which the route
    of a job's queue would lead elsewhere."""
    specs = [unpacked(spec) for spec, _ in pairs]
    for index, spec in enumerate(specs):
        await _refuse_queue(system, spec, f"jobs[{index}].queue")
    _, record = await system.known()
    if not record.routes:
        return
    changed = [index for index, (_, argument) in enumerate(pairs) if argument and "id" in specs[index]]
    ids = [str(specs[index]["id"]) for index in changed]
    engines = [await system.of(job_id, f"jobs[{index}].id") for index, job_id in zip(changed, ids, strict=True)]
    answers = await all_of(engine.call("get", job_id) for engine, job_id in zip(engines, ids, strict=True))
    for index, job_id, (packed, *_) in zip(changed, ids, answers, strict=True):
        queue = "" if packed is None else str(replies.document(packed)["queue"])
        if queue not in record.routes:
            continue
        place = record.home(value_of(record.routes[queue], queue, pairs[index][1]))
        if place != partition_of(job_id):
            raise Invalid(f"by the route of {queue} it would belong to partition {place}", f"jobs[{index}].argument")


WAYS: Mapping[str, Way] = {
    **dict.fromkeys(("cancel", "discard", "retry", "track"), by_spec_ids),
    **dict.fromkeys(("get", "watch"), _by_ids),
    **dict.fromkeys(("history", "result"), _by_id),
    "change": _change,
    "depend": _depend,
    "explain": _explain,
    "free": _free,
    "head": _head,
}
