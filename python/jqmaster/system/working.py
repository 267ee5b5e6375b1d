"""What workers ask, over the partitions of a system."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, NotFound
from jqmaster.system.jobs import by_spec_ids
from jqmaster.system.partitions import COUNT, Partitions, not_yet, spec_of
from jqmaster.system.picking import Picking
from jqmaster.system.record import OVER
from jqmaster.system.routing import unpacked
from jqmaster.system.slots import Slots, home_of
from jqmaster.wire import packform

NIL = packform.pack(None)


class Working(Partitions):
    """With what workers of all partitions need."""

    def __init__(
        self, url: str, root: str, *, form: Form = "auto", actor: str | None = None, partial: bool = False
    ) -> None:
        super().__init__(url, root, form=form, actor=actor, partial=partial)
        self.picking = Picking(self, secrets.token_hex(4))
        self.rooms = Slots(self)

    async def close(self) -> None:
        """Close the connections."""
        picking, self.picking = self.picking, Picking(self, secrets.token_hex(4))
        await picking.stop()
        await self.rooms.stop()
        await super().close()


async def _home(system: Working, worker: Any) -> Engine:
    """Where a worker is listed: a registered one's id names the partition, else its name's bucket says it."""
    engines, record = await system.known()
    number = home_of(worker)
    if number is None or number >= len(engines):
        return await system.home(worker)
    if (state := record.partitions[number].state) in OVER:
        raise NotFound(f"{worker} is not registered, its partition is {state}", "worker")
    return engines[number]


def _ids(jobs: Any) -> list[Any]:
    """Of a list of pairs; the script says what is wrong with one that is none."""
    pairs = jobs if isinstance(jobs, list) else []
    return [pair[0] if isinstance(pair, list) and pair else "" for pair in pairs]


async def _by_jobs(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """Each job where it is; answers in order."""
    spec = spec_of(arguments)
    ids = _ids(spec.get("jobs"))
    if not ids:
        return await (await _home(system, spec.get("worker"))).call(operation, *arguments)

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await engine.call(operation, pack({**spec, "jobs": [spec["jobs"][index] for index in indexes]}))

    answers = await system.grouped(ids, ask, "jobs")
    for job_id, token in spec["jobs"]:
        system.rooms.renewed(spec.get("worker"), job_id, token)
    return answers


async def _gone(system: Working, home: Engine, operation: str, spec: Spec) -> Any:
    """Nobody is there any more: what it had besides, wherever, fails as it does in its own partition."""
    held = await home.slots_of(str(spec.get("worker")))
    refused = {(job_id, token) for job_id, token in spec["jobs"]}
    answers = await _refuse(system, operation, (pack({**spec, "why": "unreachable"}),))
    await home.call(operation, pack({**spec, "jobs": []}))
    failed = {"type": "failure", "reason": "timeout", "message": "the worker is gone"}
    for job_id, token in held:
        if (job_id, token) not in refused:
            with suppress(JQError):  # else their leases end
                outcome = pack({**failed, "id": job_id, "token": token})
                await (await system.of(job_id)).call("finish", pack({"worker": spec["worker"]}), outcome, NIL)
            system.rooms.renewed(spec["worker"], job_id, token)
    return answers


async def _refuse(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """A worker's partition notes how it stands; jobs of others are given back where they are."""
    spec = spec_of(arguments)
    home = await _home(system, spec.get("worker"))
    ids = _ids(spec.get("jobs"))
    if spec.get("why") == "gone":
        return await _gone(system, home, operation, spec)
    ours = [index for index, job_id in enumerate(ids) if await system.of(job_id, f"jobs[{index}].id") is home]
    if len(ours) == len(ids):
        answers = await home.call(operation, *arguments)
        system.rooms.stirred(spec.get("worker"))
        return answers
    jobs = spec["jobs"]
    told = await home.call(operation, pack({**spec, "jobs": [jobs[index] for index in ours]}))
    others = [index for index in range(len(ids)) if index not in ours]
    back = {field: spec[field] for field in ("worker", "message") if field in spec}
    given_back = await _by_jobs(system, "release", (pack({**back, "jobs": [jobs[index] for index in others]}),))
    by_index = dict(zip((*ours, *others), (*told, *given_back), strict=True))
    return [by_index[index] for index in range(len(ids))]


async def _heartbeat(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """As others, with the arguments that notes name; what is asked of a worker is asked where it is listed."""
    spec = spec_of(arguments)
    ids, worker = _ids(spec.get("jobs")), spec.get("worker")
    home = await _home(system, worker)
    system.rooms.stirred(worker)
    named = sorted(filter(lambda index: type(index) is int, map(_argument_of, spec["jobs"]))) if ids else []
    if not ids or named != list(range(len(arguments) - 1)):
        return await home.call(operation, *arguments)  # which may refuse it

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        blobs: list[Argument] = []
        jobs = [_noted(spec["jobs"][index], arguments, blobs) for index in indexes]
        told = {**spec, "jobs": jobs} | ({"control": False} if spec.get("control") is True else {})
        if engine is not home and home_of(worker) is not None:
            told["worker"] = f"guest {worker}"  # registered elsewhere: who has the token holds the job
        return await engine.call(operation, pack(told), *blobs)

    answers = await system.grouped(ids, ask, "jobs")
    for (job_id, token, *_), left_ms in zip(spec["jobs"], answers, strict=True):
        system.rooms.renewed(worker, job_id, token, left_ms if isinstance(left_ms, int) else 0)
    if spec.get("control") is not True:
        return answers
    _, request = await home.call(operation, pack({"worker": worker, "control": True, "jobs": []}))
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


async def _finish(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """Outcomes where their jobs are, with what follows them."""
    outcomes = list(_outcomes(arguments))
    answers = await _finish_all(system, operation, arguments, outcomes)
    for said in (unpacked(outcome[0]) for outcome in outcomes):
        system.rooms.renewed(spec_of(arguments).get("worker"), replies.text(said["id"]), said["token"])
    return answers


async def _finish_all(
    system: Working, operation: str, arguments: Sequence[Argument], outcomes: Sequence[Sequence[Argument]]
) -> Any:
    spec = spec_of(arguments)
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


async def _register(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """One that announces itself is listed at the home of its name; one that is pushed to at that of its address, where
    it replaces its older self."""
    spec = spec_of(arguments)
    if spec.get("announce") is True:
        return await (await _home(system, spec.get("name"))).call(operation, *arguments)
    if "url" not in spec:
        raise not_yet(f"{operation} without announce or url")
    worker = await (await system.home(spec["url"])).call(operation, *arguments)
    system.rooms.stirred(replies.text(worker))
    return worker


async def _worker(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    worker = spec_of(arguments).get("worker")
    answer = await (await _home(system, worker)).call(operation, *arguments)
    system.rooms.stirred(worker)
    return answer


async def _unregister(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """What it has of other partitions goes back as well."""
    worker = spec_of(arguments).get("worker")
    home = await _home(system, worker)
    held = await home.slots_of(str(worker)) if home_of(worker) is not None else []
    given_back = await _worker(system, operation, arguments)
    for job_id, token in held:
        with suppress(JQError):  # else their leases end
            await (await system.of(job_id)).release(str(worker), [(job_id, token)])
    return given_back


async def _bulk(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """It is kept in one partition, which its id names, or partition 0. Whoever carries it on goes through all."""
    spec = spec_of(arguments)
    if "id" not in spec:
        return await (await system.partitions())[0].call(operation, *arguments)
    return await (await system.of(str(spec["id"])[1:])).call(operation, *arguments)


async def _kick(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    """Jobs by their ids; or those of a queue or a worker, from partition to partition, as many as are asked for."""
    spec = spec_of(arguments)
    if "ids" in spec:
        return await by_spec_ids(system, operation, arguments)
    if home_of(spec.get("worker")) is not None:
        return await _kick_registered(system, operation, spec, arguments)
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


async def _kick_registered(system: Working, operation: str, spec: Spec, arguments: Sequence[Argument]) -> Any:
    """What a worker has of its own partition, then of others."""
    home = await _home(system, spec["worker"])
    kicked, more = await home.call(operation, *arguments)
    left = spec.get("count", COUNT) - kicked
    held = await home.slots_of(spec["worker"])
    told = {field: value for field, value in spec.items() if field not in ("worker", "count")}
    for job_id, token in held[: max(0, left)]:
        engine = await system.of(job_id)
        kicked += (await engine.call(operation, pack({**told, "ids": [job_id]}))) == [b"queued"]
        system.rooms.renewed(spec["worker"], job_id, token)
    return [kicked, 1 if more or len(held) > left else 0]


async def _pick(system: Working, operation: str, arguments: Sequence[Argument]) -> Any:
    spec = spec_of(arguments)
    if "wait" in spec:
        raise not_yet(f"{operation} with wait")
    return await system.picking.pick(spec)


_WISH = {"queues", "count", "order", "before", "settings", "request"}
WAYS: Mapping[str, Callable[[Working, str, Sequence[Argument]], Awaitable[Any]]] = {
    "bulk": _bulk,
    "finish": _finish,
    "heartbeat": _heartbeat,
    "kick": _kick,
    "pick": _pick,
    "refuse": _refuse,
    "register": _register,
    "release": _by_jobs,
    "unregister": _unregister,
    "worker": _worker,
}
