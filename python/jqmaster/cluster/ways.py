"""How each operation goes over the partitions of a cluster: to which of them, and how their answers become one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jqmaster.cluster import merging, pages
from jqmaster.cluster.call import Call, all_of, packed, part_of
from jqmaster.cluster.names import home_of, is_registered
from jqmaster.cluster.routes import Part, split, unpacked
from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, new_request, pack
from jqmaster.errors import Invalid

if TYPE_CHECKING:
    from jqmaster.cluster.cluster import Cluster

Way = Callable[["Cluster", Call], Awaitable[Any]]


def by_partition(cluster: Cluster, ids: Iterable[Any]) -> dict[int, list[int]]:
    """The indexes of ids by the partition that each is of."""
    found: dict[int, list[int]] = {}
    for index, one in enumerate(ids):
        found.setdefault(cluster.number_of(one), []).append(index)
    return found


async def scattered(
    cluster: Cluster, name: str, ids: Sequence[Any], ask: Callable[[int, list[int]], Awaitable[Sequence[Any]]]
) -> list[Any]:
    """The answers for each of some ids, in their order; `ask` gets them of one partition."""

    async def one(number: int, indexes: list[int]) -> None:
        with part_of(name, indexes):
            for index, answer in zip(indexes, await ask(number, indexes), strict=True):
                answers[index] = answer

    answers: list[Any] = [None] * len(ids)
    await all_of(one(*part) for part in (by_partition(cluster, ids) or {0: []}).items())
    return answers


# -- to one ----------------------------------------------------------------------------------------------------------


async def _first(cluster: Cluster, call: Call) -> Any:
    return await cluster.at(0, call)


async def _of_job(cluster: Cluster, call: Call) -> Any:
    return await cluster.at(cluster.number_of(call.spec.get("id") or next(iter(call.arguments), "")), call)


async def _schedule(cluster: Cluster, call: Call) -> Any:
    """It is where the jobs are that it makes."""
    if call.spec.get("run"):
        return await _whoever_has_it(cluster, call)
    job = call.spec.get("job")
    home = await cluster.routes.home(job, call.arguments[1]) if isinstance(job, dict) else None
    if home is None:
        home = home_of(str(call.spec.get("id")), len(cluster.engines))
    reply = await cluster.at(home, call)
    gone = Call("unschedule", [pack({"id": call.spec.get("id")})])
    await cluster.everywhere(gone, lacking=True, but=home)  # its job may have belonged elsewhere before
    return reply


async def _whoever_has_it(cluster: Cluster, call: Call) -> Any:
    return next(answer for answer in await cluster.everywhere(call, lacking=True) if answer is not None)


# -- by ids ----------------------------------------------------------------------------------------------------------


async def _each_job(cluster: Cluster, call: Call) -> Any:
    """Bare ids."""

    async def ask(number: int, indexes: list[int]) -> Any:
        return await cluster.at(number, Call(call.operation, [call.arguments[index] for index in indexes]))

    return await scattered(cluster, "ids", call.arguments, ask)


async def _many(cluster: Cluster, call: Call) -> Any:
    """Jobs by their ids; or those that fit, in one partition after the other; or of a queue or a worker, in all."""
    ids = call.spec.get("ids")
    if isinstance(ids, list) and ids:
        if call.spec.get("atomic") and len(by_partition(cluster, ids)) > 1:
            raise Invalid("the jobs are in several partitions, which cannot be asked for all or none", "atomic")

        async def ask(number: int, indexes: list[int]) -> Any:
            return await cluster.at(number, call.but(ids=[ids[index] for index in indexes]))

        return await scattered(cluster, "ids", ids, ask)
    if "where" in call.spec:
        return await pages.in_turn(cluster, call)
    answers = [answer for answer in await cluster.everywhere(call, lacking=True) if answer is not None]
    return [sum(answer[0] for answer in answers), max(answer[1] for answer in answers)]


async def _change(cluster: Cluster, call: Call) -> Any:
    pairs = list(zip(call.arguments[::2], call.arguments[1::2], strict=False))

    async def ask(number: int, indexes: list[int]) -> Any:
        return await cluster.at(number, Call("change", [part for index in indexes for part in pairs[index]]))

    if len(call.arguments) % 2 or not pairs:
        return await cluster.at(0, call)  # which says what is wrong
    return await scattered(cluster, "jobs", [unpacked(spec).get("id") for spec, _ in pairs], ask)


async def _held(cluster: Cluster, call: Call) -> Any:
    """Jobs with their tokens; a worker that is registered says everywhere that it lives."""
    jobs = call.spec.get("jobs")
    jobs = jobs if isinstance(jobs, list) else []
    ids = [job[0] if isinstance(job, list) and job else None for job in jobs]
    control: list[Any] = []

    async def ask(number: int, indexes: list[int]) -> Any:
        reply = await cluster.at(number, call.but(jobs=[jobs[index] for index in indexes]))
        if call.spec.get("control"):
            control.append(reply[1])
            return reply[0]
        return reply

    worker = call.spec.get("worker")
    idle = set() if ids else {cluster.number_of(worker)}
    if call.operation == "heartbeat" and is_registered(worker):
        idle = set(range(len(cluster.engines))) - by_partition(cluster, ids).keys()
    await all_of(ask(number, []) for number in idle)
    answers = await scattered(cluster, "jobs", ids, ask) if ids else []
    return [answers, max(control)] if call.spec.get("control") else answers


# -- jobs and workers ------------------------------------------------------------------------------------------------


async def enqueue(cluster: Cluster, call: Call, at: Callable[[int, Call], Awaitable[Any]] | None = None) -> Any:
    """`at`: asks one partition."""
    options, parts = await split(call.arguments, cluster.routes, len(cluster.engines))

    async def ask(part: Part) -> None:
        with part_of("jobs", part.indexes):
            reply = await (at or cluster.at)(part.partition, Call("enqueue", [*options, *part.arguments]))
        for place, index in enumerate(part.indexes):
            answers[2 * index : 2 * index + 2] = reply[2 * place : 2 * place + 2]

    answers: list[Any] = [None] * (len(call.arguments) - len(options))
    await all_of(map(ask, parts))
    return answers


async def _pick(cluster: Cluster, call: Call) -> Any:
    return await cluster.picking.pick({name: value for name, value in call.spec.items() if name != "wait"}, 0)


async def _finish(cluster: Cluster, call: Call) -> Any:
    """Outcomes go where their jobs are. The next job is of the same partition, which costs no call, unless the worker
    has not looked at another for a while."""
    outcomes = _outcomes(call.arguments[1:])
    ids = [unpacked(outcome[0]).get("id") for outcome in outcomes]
    pick = call.spec.get("pick")
    if not outcomes or not isinstance(pick, dict):
        return await _picked(cluster, call, ids, outcomes, None, -1)
    wish = {"request": new_request(), **pick, "worker": call.spec.get("worker")}
    home = cluster.number_of(ids[-1])
    other = cluster.picking.due(wish, home)
    if other is None:
        answers = await _picked(cluster, call, ids, outcomes, wish, home)
        if len(answers) > len(outcomes) + 1:
            return answers
        return [*answers[:-1], *await cluster.picking.pick(wish, 0)]
    answers = await _picked(cluster, call.but(pick=None), ids, outcomes, None, -1)
    return [*answers, *await cluster.picking.pick(wish, 0, first=other)]


async def _picked(
    cluster: Cluster, call: Call, ids: Sequence[Any], outcomes: Sequence[Sequence[Argument]], wish: Any, home: int
) -> Any:
    """The answers to outcomes, with those to the pick that goes along at home."""
    found: list[Any] = []

    async def ask(number: int, indexes: list[int]) -> Any:
        pick = {name: value for name, value in wish.items() if name != "worker"} if number == home else None
        sent = [argument for index in indexes for argument in outcomes[index]]
        reply = await cluster.at(number, Call("finish", [*call.but(pick=pick).arguments[:1], *sent]))
        found[:] = reply[len(indexes) :] if number == home else found
        return reply[: len(indexes)]

    if not outcomes:  # a pick alone, or what the script refuses
        wish = call.spec.get("pick")
        if not isinstance(wish, dict):
            return await cluster.at(0, call)
        return await cluster.picking.pick({**wish, "worker": call.spec.get("worker")}, 0)
    answers = await scattered(cluster, "outcomes", ids, ask)
    if found:
        cluster.picking.note(wish, home, found)
    return [*answers, *found]


def _outcomes(arguments: Sequence[Argument]) -> list[Sequence[Argument]]:
    """Each with its blob, and the jobs that follow it."""
    found, at = [], 0
    while at < len(arguments):
        follow = unpacked(arguments[at]).get("enqueue")
        end = at + 2 + 2 * (follow if type(follow) is int else 0)
        found.append(arguments[at:end])
        at = end
    return found


async def _register(cluster: Cluster, call: Call) -> Any:
    """One that is pushed to has a part of its slots in each partition, and at least one; the first gives its id."""
    if call.spec.get("announce"):
        return await cluster.at(cluster.number_of(call.spec.get("name")), _running_at_home(cluster, call))
    count, slots = len(cluster.engines), call.spec.get("max_jobs", 1)
    shares = [slots] * count
    if type(slots) is int and slots > 0 and call.spec.get("url") is not None:
        shares = [max(1, slots // count + (number < slots % count)) for number in range(count)]
    worker = await cluster.at(0, call.but(max_jobs=shares[0]))
    for number in range(1, count):
        await cluster.at(number, call.but(max_jobs=shares[number], id=replies.text(worker)))
    return worker


def _running_at_home(cluster: Cluster, call: Call) -> Call:
    home = cluster.number_of(call.spec.get("name"))
    running = call.spec.get("running")
    return call.but(running=[one for one in running or () if cluster.number_of(one) == home] or None)


async def _unregister(cluster: Cluster, call: Call) -> Any:
    return sum(answer or 0 for answer in await cluster.everywhere(call, lacking=True))


async def _assign(cluster: Cluster, call: Call) -> Any:
    soonest = []
    for number in cluster.in_turn():
        next_ms, *jobs = await cluster.at(number, call)
        if jobs:
            return [0, *jobs]
        soonest.append(next_ms)
    return [_soonest(soonest)]


def _soonest(moments: Sequence[int]) -> int:
    return min((next_ms for next_ms in moments if next_ms >= 0), default=-1)


async def _tick(cluster: Cluster, call: Call) -> Any:
    answers = await cluster.everywhere(call)
    return [_soonest([next_ms for next_ms, _ in answers]), sum(steps for _, steps in answers)]


async def _head(cluster: Cluster, call: Call) -> Any:
    heads = [answer for answer in await cluster.everywhere(call) if answer]
    return min(heads, key=lambda head: (int(head[0]), head[1])) if heads else []


# -- settings, which all have alike ----------------------------------------------------------------------------------


async def _everywhere(cluster: Cluster, call: Call) -> Any:
    answers = await cluster.in_order(call)
    return next(answer for answer in answers if answer is not None)


async def _config(cluster: Cluster, call: Call) -> Any:
    is_change = call.spec.keys() & {"set", "unset"}
    return await (_everywhere if is_change else _first)(cluster, call)


async def _queue(cluster: Cluster, call: Call) -> Any:
    answers = await cluster.in_order(call)
    cluster.routes.forget(call.spec.get("name"))
    return packed(merging.queue([replies.plain_document(answer) for answer in answers]))


async def _constrain(cluster: Cluster, call: Call) -> Any:
    """Each partition has a part of the limits, unless it has keys of its own."""
    match = unpacked(call.arguments[1]) if len(call.arguments) > 1 else {}
    is_exact = len(cluster.engines) == 1 or await cluster.routes.is_exact(call.spec.get("by"), match)
    answers = await cluster.in_order(call.but(shared=None if is_exact else True))
    return packed(merging.constraint([replies.plain_document(answer) for answer in answers]))


async def _stats(cluster: Cluster, call: Call) -> Any:
    """Counts and histograms add up, exactly; percentiles come of the sum."""
    if call.spec.get("series"):
        return await pages.by_name(cluster, call)
    is_brief = call.spec.get("brief") is True
    found: dict[int, list[Mapping[str, Any]]] = {}
    for answer in await cluster.everywhere(call.but(brief=None)):
        for document in map(replies.plain_document, answer):
            found.setdefault(document["begin_ms"], []).append(document)
    sums = [merging.statistics(found[begin_ms]) for begin_ms in sorted(found)]  # type: ignore[arg-type]
    return [packed(merging.brief(one) if is_brief else one) for one in sums]


async def _refused(cluster: Cluster, call: Call) -> Any:
    raise Invalid(f"of a cluster it is done for each partition: {', '.join(cluster.namespaces[:3])}, …", "namespace")


_WAYS: dict[Way, str] = {
    _first: "bulk bulks keys touch mark marks webhooks",
    _of_job: "explain history result depend",
    _each_job: "get watch",
    _many: "cancel kick retry discard track",
    _held: "heartbeat release refuse",
    _everywhere: "setup unconstrain hold forget subscribe unsubscribe grant revoke worker unschedule",
    _whoever_has_it: "free",
    _refused: "export import",
    _change: "change", enqueue: "enqueue", _pick: "pick", _finish: "finish", _register: "register",
    _unregister: "unregister", _assign: "assign", _tick: "tick", _head: "head", _schedule: "schedule",
    _config: "config", _queue: "queue", _constrain: "constrain", _stats: "stats",
}  # fmt: skip
WAYS: dict[str, Way] = dict(pages.PAGES)
WAYS.update({operation: way for way, operations in _WAYS.items() for operation in operations.split()})
