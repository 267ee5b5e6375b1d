"""The operations of a cluster: as `engine.engine.Engine` has those of one namespace, over all partitions. The `@over`
of a script's head names the way: to which of them it goes, and how their answers become one."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain, count, takewhile
from typing import Any

from jqmaster.cluster import listings
from jqmaster.cluster.names import home_of, is_cluster, is_registered
from jqmaster.cluster.partitions import Call, Partitions, all_of
from jqmaster.cluster.routes import unpacked
from jqmaster.engine import packform, replies
from jqmaster.engine.calling import Argument, new_request, pack
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.waiting import MOST_REMEMBERED, in_order
from jqmaster.errors import Invalid, JQError
from jqmaster.manifest.manifest import operations

Ask = Callable[[int, list[int]], Awaitable[Sequence[Any]]]

MOVES_S = 1.0  # in this time a worker that is always busy moves as often as there are partitions
_INDEX = re.compile(r"(\w+)\[(\d+)\]")


async def scattered(name: str, parts: Mapping[int, list[int]], ask: Ask) -> list[Any]:
    """The answers for each entry of a list, in order, up to one without. `parts`: indexes of entries by partition;
    `ask` gets the answers for those of one. Problems have the entry's place in the whole list, which is called `name`.
    """

    async def one(number: int, indexes: list[int]) -> None:
        try:
            answers.update(zip(indexes, await ask(number, indexes), strict=False))
        except JQError as problem:
            place = _INDEX.match(problem.path or "")
            if place and place[1] == name and problem.path and int(place[2]) < len(indexes):
                problem.path = f"{name}[{indexes[int(place[2])]}]{problem.path[place.end() :]}"
            raise

    answers: dict[int, Any] = {}
    await all_of(one(*part) for part in parts.items())
    return [answers[index] for index in takewhile(answers.__contains__, count())]


# -- by ids ------------------------------------------------------------------------------------------------------------


async def _job(cluster: Partitions, call: Call) -> Any:
    return await cluster.at(cluster.number_of(call.spec.get("id") or next(iter(call.arguments), "")), call)


async def _jobs(cluster: Partitions, call: Call) -> Any:
    """Each where it is. Or those that fit, as many in each partition."""
    spec, arguments = call.spec, call.arguments
    if "where" in spec:
        return await listings.of_each(cluster, call)
    name = "jobs" if "jobs" in spec or call.operation == "change" else "ids"
    entries = spec.get(name) if name in spec else arguments
    if call.operation == "change" and len(arguments) % 2 == 0:
        entries = list(replies.pairs(arguments))  # a spec and an argument each
    if not isinstance(entries, list | tuple):
        return await cluster.at(0, call)  # which says what is wrong
    parts = cluster.parts(map(_id_in, entries)) or {cluster.number_of(spec.get("worker")): []}
    if spec.get("atomic") and len(parts) > 1:
        raise Invalid("the jobs are in several partitions, which cannot be asked for all or none", "atomic")
    if call.operation == "heartbeat" and is_registered(spec.get("worker")):  # it says everywhere that it lives
        parts = {number: parts.get(number, []) for number in range(len(cluster.engines))}
    control = [b""]

    async def ask(number: int, indexes: list[int]) -> Any:
        some = [entries[index] for index in indexes]
        if name not in spec:
            return await cluster.at(number, Call(call.operation, [*chain(*some)] if entries is not arguments else some))
        reply = await cluster.at(number, call.but(**{name: some}))
        if not spec.get("control"):
            return reply
        control.append(reply[1])
        return reply[0]

    answers = await scattered(name, parts, ask)
    return [answers, max(control)] if spec.get("control") else answers


def _id_in(entry: Any) -> Any:
    if isinstance(entry, tuple):
        return unpacked(entry[0]).get("id")
    return next(iter(entry), None) if isinstance(entry, list) else entry


# -- jobs and workers --------------------------------------------------------------------------------------------------


async def _enqueue(cluster: Partitions, call: Call) -> Any:
    options, pairs = call.arguments[: len(call.arguments) % 2], call.arguments[len(call.arguments) % 2 :]
    jobs = list(replies.pairs(pairs))

    async def ask(number: int, indexes: list[int]) -> Any:
        sent = chain(*(jobs[index] for index in indexes))
        return list(replies.pairs(await cluster.at(number, Call("enqueue", [*options, *sent]))))

    parts = await cluster.routes.parts(jobs, call.spec.get("request") if options else None)
    return [*chain(*await scattered("jobs", parts, ask))]


async def _pick(cluster: Partitions, call: Call) -> Any:
    """In one partition after the other, until there are jobs."""
    moments: list[int] = []
    alone = call.but(wait=None)  # who waits does so in all (`Waiting`)
    for engine in in_order(cluster.engines, call.spec.get("request") or new_request()):
        reply = await engine.raw("pick", *alone.arguments)
        if len(reply) > 1:
            return [0, *reply[1:]]  # others may have more
        moments += [next_ms for next_ms in reply if next_ms >= 0]
    return [min(moments, default=-1)]


async def _finish(cluster: Partitions, call: Call) -> Any:
    """Outcomes go where their jobs are. The next job is of the partition of the last one, which costs no call of its
    own; where there is none, and now and then, the worker is to look in all."""
    outcomes, ids, at = [], [], 1
    while at < len(call.arguments):
        spec = unpacked(call.arguments[at])
        follow = spec.get("enqueue")
        ids.append(spec.get("id"))
        outcomes.append(call.arguments[at : at + 2 + 2 * (follow if type(follow) is int else 0)])
        at += len(outcomes[-1])
    worker, pick = call.spec.get("worker"), call.spec.get("pick")
    home = cluster.number_of(ids[-1] if ids else worker)
    takes_home = pick is not None and not (ids and _moves(cluster, str(worker)))
    picked: list[Any] = []

    async def ask(number: int, indexes: list[int]) -> Any:
        sent = chain(*(outcomes[index] for index in indexes))
        spec = call.but(pick=pick if takes_home and number == home else None).arguments[:1]
        reply = await cluster.at(number, Call("finish", [*spec, *sent]))
        picked.extend(reply[len(indexes) :])
        return reply[: len(indexes)]

    answers = await scattered("outcomes", cluster.parts(ids) or {home: []}, ask)
    return answers if pick is None else [*answers, 0, *picked[1:]]


def _moves(cluster: Partitions, worker: str) -> bool:
    """Whether a worker is to look for its next job in all partitions, which so have their turn once a second."""
    now = time.monotonic()
    if now < cluster.moves.get(worker, 0.0):
        return False
    if len(cluster.moves) >= MOST_REMEMBERED:
        cluster.moves.clear()
    cluster.moves[worker] = now + MOVES_S / len(cluster.engines)
    return True


async def _register(cluster: Partitions, call: Call) -> Any:
    """One that is pushed to has a part of its slots in each partition, and at least one; the first gives its id."""
    if call.spec.get("announce"):
        return await cluster.at(cluster.number_of(call.spec.get("name")), call)
    count, slots, worker = len(cluster.engines), call.spec.get("max_jobs", 1), None
    is_pushed = type(slots) is int and slots > 0 and call.spec.get("url") is not None
    for number in range(count):
        share = max(1, slots // count + (number < slots % count)) if is_pushed else slots
        worker = replies.text(await cluster.at(number, call.but(max_jobs=share, id=worker)))
    return worker


async def _schedule(cluster: Partitions, call: Call) -> Any:
    """It is where the jobs belong that it makes; what it made before may have belonged elsewhere."""
    job, name = call.spec.get("job"), call.spec.get("id")
    if not isinstance(job, dict):  # it is run or paused
        return (await cluster.everywhere(call, changes=True))[0]
    argument = call.arguments[1] if len(call.arguments) > 1 else packform.NIL
    [home] = await cluster.routes.homes([(job, argument)])
    home = home_of(str(name), len(cluster.engines)) if home is None else home
    reply = await cluster.at(home, call)
    await cluster.everywhere(Call("unschedule", [pack({"id": name})]), changes=True, but=home)
    return reply


# -- all of them -------------------------------------------------------------------------------------------------------

_LISTED = {"queue": "queues", "constrain": "constraints"}


async def _all(cluster: Partitions, call: Call) -> Any:
    """The same in each. Of a constraint each has a part of the limits, unless it has keys of its own."""
    if call.operation == "constrain":
        match = unpacked(call.arguments[1]) if len(call.arguments) > 1 else {}
        is_exact = len(cluster.engines) == 1 or await cluster.routes.is_exact(call.spec.get("by"), match)
        call = call.but(shared=None if is_exact else True)
    if call.operation == "queue" and call.spec.get("known"):  # in one partition perhaps: then it is changed in all
        await cluster.everywhere(call, changes=True)
        call = call.but(known=None)
    answers = await cluster.everywhere(call, changes=True)
    if call.operation == "queue":
        cluster.routes.forget(call.spec.get("name"))
    if listing := _LISTED.get(call.operation):
        return listings.merged(listing, answers)
    return sum(answers) if call.operation == "unregister" else answers[0]


async def _stats(cluster: Partitions, call: Call) -> Any:
    """Buckets of the same time, or by queue and name."""
    if call.spec.get("series"):
        return await listings.by_name(cluster, call)
    found: dict[int, list[bytes]] = {}
    for blob in (blob for answer in await cluster.everywhere(call) for blob in answer):
        found.setdefault(replies.plain_value(blob)["begin_ms"], []).append(blob)
    return [listings.merged("stats", found[begin_ms]) for begin_ms in sorted(found)]


async def _found(cluster: Partitions, call: Call) -> Any:
    """What has a text in its name: of each kind as many as one partition would tell, each once."""
    documents = [replies.plain_value(answer) for answer in await cluster.everywhere(call)]
    more, merged = {kind for document in documents for kind in document["more"]}, dict[str, Any]()
    for kind in documents[0].keys() - {"more"}:
        things = list({repr(thing): thing for document in documents for thing in document[kind]}.values())
        merged[kind] = things[: call.spec.get("count") or 5]
        more |= {kind} if things != merged[kind] else set()
    return listings.packed({**merged, "more": sorted(more)})


async def _none(cluster: Partitions, call: Call) -> Any:
    names = ", ".join(cluster.namespaces[:2])
    raise Invalid(f"not of a whole cluster: {call.operation} is for each partition alone, {names}, …", "namespace")


WAYS: Mapping[str, Callable[[Partitions, Call], Awaitable[Any]]] = {
    "first": lambda cluster, call: cluster.at(0, call),
    "pick": _pick, "all": _all, "none": _none, "job": _job, "jobs": _jobs, "name": listings.by_name,
    "each": listings.of_each, "enqueue": _enqueue, "finish": _finish, "register": _register, "schedule": _schedule,
    "stats": _stats, "found": _found,
}  # fmt: skip


class Cluster(Partitions):
    """The operations of a cluster, whose name is such as `{shop:*/16}`. Raises what `jqmaster.errors` has."""

    async def raw(self, operation: str, *arguments: Argument) -> Any:
        return await WAYS[operations()[operation].over](self, Call(operation, arguments))


def open_engine(url: str, namespace: str, **how: Any) -> Engine:
    """The operations of a namespace such as `{shop}`, or of a cluster such as `{shop:*/16}`, with connections of their
    own. `how`: of `Engine`. Raises ValueError for a URL or a name that cannot be."""
    return Cluster(url, namespace, **how) if is_cluster(namespace) else Engine(connect(url), namespace, **how)
