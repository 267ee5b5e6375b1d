"""What a key that is bound to queues may ask for: what names its queues, or jobs of them. All else is refused, so that
an operation that is new is, too.

Looked at are the queues and jobs that a call names, by the types of its arguments. Leases prove themselves by their
tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.manifest.contract import Argument, Operation
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import Identity
from jqmaster.server.message import no_such_job
from jqmaster.server.reader import map_of, printable

_LISTED = {"queues": "name", "alerts": "queue"}
"""Listings that leave out what is of other queues, and where an entry has its queue's name."""
_NAMING = ("queue", "job", "Where", "Pick", "NewJob", "JobChange", "Outcome")
"""Types of arguments that name queues or jobs."""


async def check(engine: Engine, who: Identity, operation: Operation, given: Mapping[str, Any]) -> None:
    """Raise 403 unless all queues that a call names are among those of who makes it, 404 for a job of others, and 400
    where that cannot be read. `given`: its arguments by name, of lists the items as they came."""
    if who.queues is None:
        return
    if given.get("dependents") == "cancel":
        raise refused("jobs that wait for others may be of any queue, so it may not cancel them as well")
    named = [(kind_of(operation, one), given[one.name]) for one in operation.arguments if one.name in given]
    queues = [queue for kind, value in named for queue in _queues_in(kind, value)]
    jobs = [job for kind, value in named for job in _jobs_in(kind, value)]
    if not (queues or jobs) and operation.name not in _LISTED:
        if not operation.is_free or operation.restricted.keys() & given.keys():
            raise refused(f"{operation.name} concerns all queues, or name one of them as queue")
    _check_queues(who, queues)
    if jobs:
        await _check_jobs(engine, who, jobs)


def may_ask(who: Identity, operation: Operation) -> bool:
    """Whether any call of it is not refused, as for its queues."""
    names = any(kind_of(operation, argument) in _NAMING for argument in operation.arguments)
    return who.queues is None or names or operation.is_free


def leave_out(who: Identity, operation: Operation, reply: Any) -> Any:
    """A reply without what concerns none of their queues."""
    if who.queues is None or operation.name not in _LISTED:
        return reply
    cursor, *entries = reply
    return [cursor, *(one for one in entries if who.may_use(map_of(one).get(_LISTED[operation.name], "")))]


def kind_of(operation: Operation, argument: Argument) -> str:
    """The type of what an argument names. Reads take any name as that of a queue."""
    if argument.name == "queue" or (operation.name, argument.name) in (("queues", "names"), ("forget", "name")):
        return "queue"
    return (argument.of.of or argument.of).name


def check_answer(who: Identity, outcome: Mapping[str, Any], follow: Sequence[bytes]) -> None:
    """Raise 403 unless all that follows a worker's answer to a push is within the queues of who registered it, as if
    it had come by `POST /done`. `follow`: specs and arguments of jobs."""
    _check_queues(who, _queues_of([outcome, *map(map_of, follow[::2])]))


def _queues_in(kind: str, value: Any) -> Iterable[Any]:
    match kind:
        case "queue":
            return value if isinstance(value, list) else [value]
        case "Where" | "Pick":
            named = value if isinstance(value, dict) else {}
            return [named.get("queue")] if kind == "Where" else _queues_in("queue", named.get("queues", []))
        case "NewJob" | "JobChange" | "Outcome":
            return _queues_of(map(map_of, value[::2]))
    return ()


def _queues_of(maps: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Those that new jobs, changes and outcomes name. A job without a queue has that of its name."""
    for spec in maps:
        for part in (spec, spec.get("move")):
            if isinstance(part, Mapping):
                names = (part.get("queue"), part.get("name"))
                yield from [name for name in names if name is not None][:1]


def _jobs_in(kind: str, value: Any) -> Iterable[Any]:
    if kind == "JobChange":
        return [map_of(change).get("id") for change in value[::2]]
    return [] if kind != "job" else value if isinstance(value, list) else [value]


async def _check_jobs(engine: Engine, who: Identity, ids: Iterable[Any]) -> None:
    """Of jobs that are there. Raises 400 for what is no id: a cluster could refuse that in one partition, and do in
    another what it was asked for with it."""
    named = [job_id.encode(errors="surrogateescape") if isinstance(job_id, str) else job_id for job_id in ids]
    texts = [job_id for job_id in named if isinstance(job_id, bytes)]
    while texts:
        found = await engine.raw("get", *texts)
        for job in map(replies.document, filter(None, found)):
            if not who.may_use(job["queue"]):
                raise no_such_job(job["id"])
        del texts[: len(found)]


def _check_queues(who: Identity, queues: Iterable[Any]) -> None:
    for queue in queues:
        if queue is None:
            raise refused("name one of them as queue")
        if not who.may_use(str(queue)):
            raise refused(f"{printable(str(queue))} is not among them")


def refused(why: str) -> HttpError:
    """403 for somebody's key."""
    return HttpError("FORBIDDEN", f"this key is bound to queues: {why}")
