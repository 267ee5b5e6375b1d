"""What workers ask, over the partitions of a system. Picking is not here: a worker asks partitions itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import NotFound
from jqmaster.system.record import partition_of
from jqmaster.system.routing import unpacked
from jqmaster.system.ways import COUNT, Partitions, Way, not_yet, spec_of

_REGISTERED = re.compile("w[0-9a-f]{14,16}")


async def _home(system: Partitions, worker: Any) -> Engine:
    """Where a worker is listed: a registered one's id names the partition, else its name's bucket says it."""
    engines = await system.partitions()
    assert system.record is not None
    name = str(worker)
    if _REGISTERED.fullmatch(name) and (number := partition_of(name[1:])) < len(engines):
        return engines[number]
    return engines[system.record.home(name.encode(errors="surrogatepass"))]


def _ids(jobs: Any) -> list[Any]:
    """Of a list of pairs; the script says what is wrong with one that is none."""
    pairs = jobs if isinstance(jobs, list) else []
    return [pair[0] if isinstance(pair, list) and pair else "" for pair in pairs]


async def _by_jobs(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Each job where it is; answers in order."""
    spec = spec_of(arguments)
    ids = _ids(spec.get("jobs"))
    if not ids:
        return await (await _home(system, spec.get("worker"))).call(operation, *arguments)

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(operation, pack({**spec, "jobs": [spec["jobs"][index] for index in indexes]}))

    return await system.grouped(ids, ask, "jobs")


async def _heartbeat(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """As others, with the arguments that notes name; what is asked of a worker is asked where it is listed."""
    spec = spec_of(arguments)
    ids = _ids(spec.get("jobs"))
    home = await _home(system, spec.get("worker"))
    if not ids:
        return await home.call(operation, *arguments)

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        blobs: list[Argument] = []
        jobs = [_noted(spec["jobs"][index], arguments, blobs) for index in indexes]
        told = {**spec, "jobs": jobs} | ({"control": False} if spec.get("control") is True else {})
        return await engine.call(operation, pack(told), *blobs)

    answers = await system.grouped(ids, ask, "jobs")
    if spec.get("control") is not True:
        return answers
    _, request = await home.call(operation, pack({"worker": spec.get("worker"), "control": True, "jobs": []}))
    return [answers, request]


def _noted(job: Any, arguments: Sequence[Argument], blobs: list[Argument]) -> Any:
    """A job of a heartbeat, its argument among those of the part."""
    notes = job[2] if isinstance(job, list) and len(job) == 3 and isinstance(job[2], dict) else {}
    index = notes.get("argument")
    if type(index) is not int or not 0 <= index < len(arguments) - 1:
        return job
    blobs.append(arguments[1 + index])
    return [*job[:2], {**notes, "argument": len(blobs) - 1}]


async def _finish(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Outcomes where their jobs are, with what follows them."""
    spec = spec_of(arguments)
    if "pick" in spec:
        raise not_yet(f"{operation} with pick")
    outcomes: list[Sequence[Argument]] = []
    at = 1
    while at < len(arguments):
        follow = unpacked(arguments[at]).get("enqueue")
        size = 2 + 2 * (follow if type(follow) is int and follow > 0 else 0)
        outcomes.append(arguments[at : at + size])
        at += size
    if not outcomes:
        return await (await system.partitions())[0].call(operation, *arguments)
    ids = [replies.text(unpacked(outcome[0]).get("id", "")) for outcome in outcomes]

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(operation, arguments[0], *(one for index in indexes for one in outcomes[index]))

    return await system.grouped(ids, ask, "outcomes")


async def _register(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """One that announces itself is listed at the home of its name."""
    spec = spec_of(arguments)
    if spec.get("announce") is not True:
        raise not_yet(f"{operation} without announce")
    return await (await _home(system, spec.get("name"))).call(operation, *arguments)


async def _worker(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    return await (await _home(system, spec_of(arguments).get("worker"))).call(operation, *arguments)


async def _bulk(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """One that there is, in the partition that its id names; each is within one."""
    spec = spec_of(arguments)
    if "id" not in spec:
        raise not_yet("beginning a bulk")
    return await (await system.of(str(spec["id"])[1:])).call(operation, *arguments)


async def _kick(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Jobs by their ids; or those of a queue or a worker, from partition to partition, as many as are asked for."""
    spec = spec_of(arguments)
    if "ids" in spec:
        return await system.by_spec_ids(operation, arguments)
    left = spec.get("count", COUNT)
    total, is_known, missing = 0, False, None
    engines = await system.partitions()
    for engine in engines:
        try:
            kicked, more = await engine.call(operation, pack({**spec, "count": left}))
        except NotFound as problem:
            missing = problem
            continue
        total, left, is_known = total + kicked, left - kicked, True
        if more or (left <= 0 and engine is not engines[-1]):
            return [total, 1]
    if missing is not None and not is_known:
        raise missing
    return [total, 0]


WAYS: Mapping[str, Way] = {
    "bulk": _bulk,
    "finish": _finish,
    "heartbeat": _heartbeat,
    "kick": _kick,
    "refuse": _by_jobs,
    "register": _register,
    "release": _by_jobs,
    "unregister": _worker,
    "worker": _worker,
}
