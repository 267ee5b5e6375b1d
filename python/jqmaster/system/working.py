"""What workers ask, over the partitions of a system."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, NotFound
from jqmaster.system.jobs import by_spec_ids
from jqmaster.system.partitions import COUNT, Call, Partitions, not_yet
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

    async def of_worker(self, worker: Any) -> Engine:
        """Where a worker is listed: a registered one's id names the partition, else its name's bucket says it."""
        engines, record = await self.known()
        number = home_of(worker)
        if number is None or number >= len(engines):
            return await self.home(worker)
        if (state := record.partitions[number].state) in OVER:
            raise NotFound(f"{worker} is not registered, its partition is {state}", "worker")
        return engines[number]


def _ids(jobs: Any) -> list[Any]:
    """Of a list of pairs; the script says what is wrong with one that is none."""
    pairs = jobs if isinstance(jobs, list) else []
    return [pair[0] if isinstance(pair, list) and pair else "" for pair in pairs]


async def _by_jobs(system: Working, call: Call) -> Any:
    """Each job where it is; answers in order."""
    spec = call.spec
    ids = _ids(spec.get("jobs"))
    if not ids:
        return await call.at(await system.of_worker(spec.get("worker")))

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        return await call.at(engine, jobs=[spec["jobs"][index] for index in indexes])

    answers = await system.grouped(ids, ask, "jobs")
    for job_id, token in spec["jobs"]:
        system.rooms.renewed(spec.get("worker"), job_id, token)
    return answers


async def _gone(system: Working, home: Engine, call: Call) -> Any:
    """Nobody is there any more: what it had besides, wherever, fails as it does in its own partition."""
    spec = call.spec
    held = await home.slots_of(str(spec.get("worker")))
    refused = {(job_id, token) for job_id, token in spec["jobs"]}
    answers = await _refuse(system, call.changed(why="unreachable"))
    await call.at(home, jobs=[])
    failed = {"type": "failure", "reason": "timeout", "message": "the worker is gone"}
    for job_id, token in held:
        if (job_id, token) not in refused:
            with suppress(JQError):  # else their leases end
                outcome = pack({**failed, "id": job_id, "token": token})
                await (await system.of(job_id)).call("finish", pack({"worker": spec["worker"]}), outcome, NIL)
            system.rooms.renewed(spec["worker"], job_id, token)
    return answers


async def _refuse(system: Working, call: Call) -> Any:
    """A worker's partition notes how it stands; jobs of others are given back where they are."""
    spec = call.spec
    home = await system.of_worker(spec.get("worker"))
    ids = _ids(spec.get("jobs"))
    if spec.get("why") == "gone":
        return await _gone(system, home, call)
    ours = [index for index, job_id in enumerate(ids) if await system.of(job_id, f"jobs[{index}].id") is home]
    if len(ours) == len(ids):
        answers = await call.at(home)
        system.rooms.stirred(spec.get("worker"))
        return answers
    jobs = spec["jobs"]
    told = await call.at(home, jobs=[jobs[index] for index in ours])
    others = [index for index in range(len(ids)) if index not in ours]
    back: dict[str, Any] = {field: spec[field] for field in ("worker", "message") if field in spec}
    back |= {"jobs": [jobs[index] for index in others]}
    given_back = await _by_jobs(system, Call("release", [pack(back)]))
    by_index = dict(zip((*ours, *others), (*told, *given_back), strict=True))
    return [by_index[index] for index in range(len(ids))]


async def _heartbeat(system: Working, call: Call) -> Any:
    """As others, with the arguments that notes name; what is asked of a worker is asked where it is listed."""
    spec = call.spec
    ids, worker = _ids(spec.get("jobs")), spec.get("worker")
    home = await system.of_worker(worker)
    system.rooms.stirred(worker)
    named = sorted(filter(lambda index: type(index) is int, map(_argument_of, spec["jobs"]))) if ids else []
    if not ids or named != list(range(len(call.arguments) - 1)):
        return await call.at(home)  # which may refuse it

    async def ask(engine: Engine, indexes: list[int]) -> Any:
        blobs: list[Argument] = []
        jobs = [_noted(spec["jobs"][index], call.arguments, blobs) for index in indexes]
        told = {**spec, "jobs": jobs} | ({"control": False} if spec.get("control") is True else {})
        if engine is not home and home_of(worker) is not None:
            told["worker"] = f"guest {worker}"  # registered elsewhere: who has the token holds the job
        return await engine.call(call.operation, pack(told), *blobs)

    answers = await system.grouped(ids, ask, "jobs")
    for (job_id, token, *_), left_ms in zip(spec["jobs"], answers, strict=True):
        system.rooms.renewed(worker, job_id, token, left_ms if isinstance(left_ms, int) else 0)
    if spec.get("control") is not True:
        return answers
    _, request = await home.call(call.operation, pack({"worker": worker, "control": True, "jobs": []}))
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


async def _finish(system: Working, call: Call) -> Any:
    """Outcomes where their jobs are, with what follows them."""
    outcomes = list(_outcomes(call.arguments))
    answers = await _finish_all(system, call, outcomes)
    for said in (unpacked(outcome[0]) for outcome in outcomes):
        system.rooms.renewed(call.spec.get("worker"), replies.text(said["id"]), said["token"])
    return answers


async def _finish_all(system: Working, call: Call, outcomes: Sequence[Sequence[Argument]]) -> Any:
    spec = call.spec
    engines = await system.partitions()
    pick = spec.get("pick")
    if isinstance(pick, dict) and "wait" in pick:
        raise not_yet(f"{call.operation} with wait")
    if not outcomes and isinstance(pick, dict) and pick.keys() <= _WISH:
        try:
            return await system.picking.pick({**pick, "worker": spec.get("worker")})
        except JQError as problem:
            if problem.path and problem.path != "worker":
                problem.path = f"pick.{problem.path}"
            raise
    if not outcomes:
        return await call.at(engines[0])
    ids = [replies.text(unpacked(outcome[0]).get("id", "")) for outcome in outcomes]

    async def ask(engine: Engine, indexes: list[int], told: Argument = call.arguments[0]) -> Any:
        return await engine.call(call.operation, told, *(one for index in indexes for one in outcomes[index]))

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


async def _register(system: Working, call: Call) -> Any:
    """One that announces itself is listed at the home of its name; one that is pushed to at that of its address, where
    it replaces its older self."""
    spec = call.spec
    if spec.get("announce") is True:
        return await call.at(await system.of_worker(spec.get("name")))
    if "url" not in spec:
        raise not_yet(f"{call.operation} without announce or url")
    worker = await call.at(await system.home(spec["url"]))
    system.rooms.stirred(replies.text(worker))
    return worker


async def _worker(system: Working, call: Call) -> Any:
    worker = call.spec.get("worker")
    answer = await call.at(await system.of_worker(worker))
    system.rooms.stirred(worker)
    return answer


async def _unregister(system: Working, call: Call) -> Any:
    """What it has of other partitions goes back as well."""
    worker = call.spec.get("worker")
    home = await system.of_worker(worker)
    held = await home.slots_of(str(worker)) if home_of(worker) is not None else []
    given_back = await _worker(system, call)
    for job_id, token in held:
        with suppress(JQError):  # else their leases end
            await (await system.of(job_id)).release(str(worker), [(job_id, token)])
    return given_back


async def _bulk(system: Working, call: Call) -> Any:
    """It is kept in one partition, which its id names, or partition 0. Whoever carries it on goes through all."""
    spec = call.spec
    if "id" not in spec:
        return await call.at((await system.partitions())[0])
    return await call.at(await system.of(str(spec["id"])[1:]))


async def _kick(system: Working, call: Call) -> Any:
    """Jobs by their ids; or those of a queue or a worker, from partition to partition, as many as are asked for."""
    spec = call.spec
    if "ids" in spec:
        return await by_spec_ids(system, call)
    if home_of(spec.get("worker")) is not None:
        return await _kick_registered(system, call)
    left = spec.get("count", COUNT)
    total, is_known, missing = 0, False, None
    engines = list((await system.live()).values())
    for engine in engines:
        try:
            kicked, more = await call.at(engine, count=left)
        except NotFound as problem:
            missing = problem
            continue
        total, left, is_known = total + kicked, left - kicked, True
        if more or (left <= 0 and engine is not engines[-1]):
            return [total, 1]
    if missing is not None and not is_known:
        raise missing
    return [total, 0]


async def _kick_registered(system: Working, call: Call) -> Any:
    """What a worker has of its own partition, then of others."""
    spec = call.spec
    home = await system.of_worker(spec["worker"])
    kicked, more = await call.at(home)
    left = spec.get("count", COUNT) - kicked
    held = await home.slots_of(spec["worker"])
    told = {field: value for field, value in spec.items() if field not in ("worker", "count")}
    for job_id, token in held[: max(0, left)]:
        engine = await system.of(job_id)
        kicked += (await engine.call(call.operation, pack({**told, "ids": [job_id]}))) == [b"queued"]
        system.rooms.renewed(spec["worker"], job_id, token)
    return [kicked, 1 if more or len(held) > left else 0]


async def _pick(system: Working, call: Call) -> Any:
    spec = call.spec
    if "wait" in spec:
        raise not_yet(f"{call.operation} with wait")
    return await system.picking.pick(spec)


_WISH = {"queues", "count", "order", "before", "settings", "request"}
WAYS: Mapping[str, Callable[[Working, Call], Awaitable[Any]]] = {
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
