"""What workers ask, over the partitions of a system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError, NotFound
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
    named = sorted(filter(lambda index: type(index) is int, map(_argument_of, spec["jobs"]))) if ids else []
    if not ids or named != list(range(len(arguments) - 1)):
        return await home.call(operation, *arguments)  # which may refuse it

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
    index = _argument_of(job)
    if type(index) is not int:
        return job
    blobs.append(arguments[1 + index])
    return [*job[:2], {**job[2], "argument": len(blobs) - 1}]


def _argument_of(job: Any) -> Any:
    """Which of the arguments a job's notes name."""
    return job[2].get("argument") if isinstance(job, list) and len(job) == 3 and isinstance(job[2], dict) else None


def _outcomes(arguments: Sequence[Argument]) -> Iterator[Sequence[Argument]]:
    """Each with its blob, and the jobs that follow it."""
    at = 1
    while at < len(arguments):
        follow = unpacked(arguments[at]).get("enqueue")
        size = 2 + 2 * (follow if type(follow) is int and follow > 0 else 0)
        yield arguments[at : at + size]
        at += size


async def _finish(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Outcomes where their jobs are, with what follows them."""
    spec = spec_of(arguments)
    outcomes = list(_outcomes(arguments))
    engines = await system.partitions()
    pick = spec.get("pick")
    if isinstance(pick, dict) and "wait" in pick:
        raise not_yet(f"{operation} with wait")
    if not outcomes and isinstance(pick, dict) and pick.keys() <= _WISH:
        try:
            return await system.picking.pick({**pick, "worker": spec.get("worker")})
        except JQError as problem:
            if problem.path and problem.path != "worker":
                problem.path = f"pick.{problem.path}"
            raise
    if not outcomes:
        return await engines[0].call(operation, *arguments)
    ids = [replies.text(unpacked(outcome[0]).get("id", "")) for outcome in outcomes]

    async def ask(engine: Engine, indexes: list[int], told: Argument = arguments[0]) -> Any:
        return await engine.call(operation, told, *(one for index in indexes for one in outcomes[index]))

    if not isinstance(pick, dict):
        return await system.grouped(ids, ask, "outcomes")
    plain = pack({field: value for field, value in spec.items() if field != "pick"})
    home = await system.of(ids[0], "outcomes[0].id")
    picked: list[Any] = [-1]

    async def ask_and_pick(engine: Engine, indexes: list[int]) -> Any:
        """Where the first of the outcomes is, the next job comes with its answer."""
        nonlocal picked
        if engine is not home:
            return await ask(engine, indexes, plain)

        async def finish(wish: Mapping[str, Any]) -> list[Any]:
            reply = await ask(engine, indexes, pack({**spec, "pick": wish}))
            return [reply[: len(indexes)], reply[len(indexes) :]]

        answers, picked = await system.picking.with_report(str(spec.get("worker")), engine, pick, finish)
        return answers

    return [*await system.grouped(ids, ask_and_pick, "outcomes"), *picked]


async def _register(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """One that announces itself is listed at the home of its name."""
    spec = spec_of(arguments)
    if spec.get("announce") is not True:
        raise not_yet(f"{operation} without announce")
    return await (await _home(system, spec.get("name"))).call(operation, *arguments)


async def _worker(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    return await (await _home(system, spec_of(arguments).get("worker"))).call(operation, *arguments)


async def _bulk(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """It is kept in one partition, which its id names, or partition 0. Whoever carries it on goes through all."""
    spec = spec_of(arguments)
    if "id" not in spec:
        return await (await system.partitions())[0].call(operation, *arguments)
    return await (await system.of(str(spec["id"])[1:])).call(operation, *arguments)


async def _kick(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    """Jobs by their ids; or those of a queue or a worker, from partition to partition, as many as are asked for."""
    spec = spec_of(arguments)
    if "ids" in spec:
        return await system.by_spec_ids(operation, arguments)
    left = spec.get("count", COUNT)
    total, is_known, missing = 0, False, None
    engines = list((await system.live()).values())
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


async def _pick(system: Partitions, operation: str, arguments: Sequence[Argument]) -> Any:
    spec = spec_of(arguments)
    if "wait" in spec:
        raise not_yet(f"{operation} with wait")
    return await system.picking.pick(spec)


_WISH = {"queues", "count", "order", "before", "request"}
WAYS: Mapping[str, Way] = {
    "bulk": _bulk,
    "finish": _finish,
    "heartbeat": _heartbeat,
    "kick": _kick,
    "pick": _pick,
    "refuse": _by_jobs,
    "register": _register,
    "release": _by_jobs,
    "unregister": _worker,
    "worker": _worker,
}
