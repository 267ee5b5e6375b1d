"""Jobs by their ids, and by their unique keys, over the partitions of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import builtin
from jqmaster.errors import Invalid, NotFound
from jqmaster.system.calls import ANSWER_S, all_of
from jqmaster.system.partitions import Call, Partitions, Way, next_of, place_of
from jqmaster.system.record import partition_of
from jqmaster.system.routing import unpacked, value_of
from jqmaster.wire import packform
from jqmaster.wire.operations import GOES_BY, going


async def _by_id(system: Partitions, call: Call) -> Any:
    """Of one job, whose id is in the spec, or the argument."""
    by = GOES_BY[call.operation]
    return await _asked(system, await system.of(call.spec.get(by, "") if by else call.arguments[0]), call)


async def _asked(system: Partitions, engine: Engine, call: Call) -> Any:
    """What a partition says. Who only looks does not wait for long where it may be away."""
    if not system.is_partial or builtin()[call.operation].flags != "read":
        return await call.at(engine)
    number = list(await system.partitions()).index(engine)
    return await system.patiently(number, call.at, ANSWER_S)


async def _explain(system: Partitions, call: Call) -> Any:
    """With the number of the job's partition."""
    reply = await _by_id(system, call)
    return packform.extend_map(reply, {"partition": packform.pack(partition_of(call.arguments[0]))})


async def _by_ids(system: Partitions, call: Call) -> Any:
    """An argument for each job: its id."""

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await _asked(system, engine, Call(call.operation, [call.arguments[index] for index in indexes]))

    return await system.grouped(call.arguments, ask, "ids")


async def _change(system: Partitions, call: Call) -> Any:
    """Two arguments for each job: a spec with its id, a blob."""
    pairs = list(replies.pairs(list(call.arguments)))
    await _refuse_change(system, pairs)

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(call.operation, *(one for index in indexes for one in pairs[index]))

    return await system.grouped([unpacked(spec).get("id", "") for spec, _ in pairs], ask, "ids")


async def by_spec_ids(system: Partitions, call: Call) -> Any:
    """A spec with the ids of jobs, or with conditions, step by step."""
    spec = call.spec
    await _refuse_queue(system, spec)
    if "where" in spec:
        return await _steps(system, call)
    ids = spec.get("ids")
    if not isinstance(ids, list) or not ids:  # the script says what is wrong
        return await call.at((await system.partitions())[0])
    if spec.get("atomic") and len({partition_of(one) for one in ids}) > 1:
        raise Invalid("all or nothing is possible within one partition alone", "atomic")

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await call.at(engine, ids=[ids[index] for index in indexes])

    return await system.grouped(ids, ask, "ids")


async def _steps(system: Partitions, call: Call) -> Any:
    """One partition after the other; the cursor begins with the number of the one that it is in."""
    live = await system.live()
    at, cursor = place_of(call.spec.get("cursor"), live)
    reply = await call.at(live[at], cursor=cursor)
    if following := replies.text(reply[0]):
        reply[0] = f"{at}:{following}"
    elif (behind := next_of(at, live)) is not None:
        reply[0] = f"{behind}:"
    return reply


async def _by_key(system: Partitions, call: Call) -> Any:
    """By the bucket of the unique key, and of where that was; where queues have routes, wherever it is."""
    engines, record = await system.known()
    key = str(call.spec.get(GOES_BY[call.operation], ""))
    home, former = (engines[one.home(key)] for one in (record, record.before))
    others = [one for one in (await system.live()).values() if one is not home and (one is former or record.routes)]
    return (await all_of(map(call.at, (home, *others)), but=NotFound))[0]


async def _head(system: Partitions, call: Call) -> Any:
    """Of one answer each, or none, the least."""
    return min(filter(None, await system.each(call)), default=[])


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
    **dict.fromkeys(going("jobs"), by_spec_ids),
    **dict.fromkeys(("get", "watch"), _by_ids),
    **dict.fromkeys(going("job"), _by_id),
    **dict.fromkeys(going("key"), _by_key),
    "change": _change,
    "explain": _explain,
    "head": _head,
}
