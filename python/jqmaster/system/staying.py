"""Jobs of queues with a route stay where it led them: nothing moves them to another partition afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec
from jqmaster.errors import Invalid
from jqmaster.system.record import partition_of
from jqmaster.system.routes import value_of
from jqmaster.system.routing import unpacked
from jqmaster.system.ways import Partitions, all_of


async def refuse_queue(system: Partitions, spec: Spec, path: str = "queue") -> None:
    """Raise Invalid for jobs that are to wait in a queue with a route from now on: who knows where they belong."""
    await system.partitions()
    queue = spec.get("queue")
    if system.record is not None and isinstance(queue, str) and queue in system.record.routes:
        raise Invalid(f"jobs of {queue} have a route, which leads where they are enqueued", path)


async def refuse_change(system: Partitions, pairs: Sequence[tuple[Argument, Argument]]) -> None:
    """Raise Invalid for a change of jobs, specs with arguments, to such a queue; or to an argument by which the route
    of a job's queue would lead elsewhere."""
    specs = [unpacked(spec) for spec, _ in pairs]
    for index, spec in enumerate(specs):
        await refuse_queue(system, spec, f"jobs[{index}].queue")
    if system.record is None or not system.record.routes:
        return
    changed = [index for index, (_, argument) in enumerate(pairs) if argument and "id" in specs[index]]
    ids = [str(specs[index]["id"]) for index in changed]
    engines = [await system.of(job_id, f"jobs[{index}].id") for index, job_id in zip(changed, ids, strict=True)]
    answers = await all_of(engine.call("get", job_id) for engine, job_id in zip(engines, ids, strict=True))
    for index, job_id, (packed, *_) in zip(changed, ids, answers, strict=True):
        queue = "" if packed is None else str(replies.document(packed)["queue"])
        if queue not in system.record.routes:
            continue
        place = system.record.home(value_of(system.record.routes[queue], queue, pairs[index][1]))
        if place != partition_of(job_id):
            raise Invalid(f"by the route of {queue} it would belong to partition {place}", f"jobs[{index}].argument")
