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
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument, Operation
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import Identity
from jqmaster.server.reader import map_of, printable

_QUEUE_OF = {"queues": "name", "alerts": "queue", "get": "queue"}
"""Operations of which a bound key gets what is of its own queues, and where an entry has its queue's name: listings
leave out the rest, `get` has nil, as of jobs that are gone."""
_NAMING = ("queue", "job", "Where", "Pick", "NewJob", "JobChange", "Outcome")
"""Types of arguments that name queues or jobs."""


async def check(engine: Engine, who: Identity, operation: Operation, given: Mapping[str, Any]) -> None:
    """Raise 403 unless all that a call names is within the queues of who makes it, 400 where that cannot be read.
    `given`: its arguments by name, of lists the items as they came."""
    if who.queues is None or operation.name == "get":
        return
    if given.get("dependents") == "cancel":
        raise refused("jobs that wait for others may be of any queue, so it may not cancel them as well")
    queues: list[Any] = []
    jobs: list[Any] = []
    for argument in operation.arguments:
        if argument.name not in given:
            continue
        kind, value = kind_of(operation, argument), given[argument.name]
        if kind in ("queue", "job"):
            (queues if kind == "queue" else jobs).extend(value if isinstance(value, list) else [value])
        elif kind in ("Where", "Pick"):
            named = value if isinstance(value, dict) else {}
            queues += [named.get("queue")] if kind == "Where" else named.get("queues", [])
        elif kind in _NAMING:
            maps = list(map(map_of, value[::2]))
            queues += _queues_of(maps)
            jobs += [change.get("id") for change in maps if kind == "JobChange"]
    if not (queues or jobs) and operation.name not in _QUEUE_OF:
        if not operation.is_free or operation.restricted.keys() & given.keys():
            raise refused(f"{operation.name} concerns all queues, or name one of them as queue")
    _check_queues(who, queues)
    if jobs:
        await _check_jobs(engine, who, jobs)


def may_ask(who: Identity, operation: Operation) -> bool:
    """Whether any call of it is not refused, as for its queues."""
    names = any(kind_of(operation, argument) in _NAMING for argument in operation.arguments)
    return who.queues is None or names or operation.is_free or operation.name in _QUEUE_OF


def leave_out(who: Identity, operation: Operation, reply: Any) -> Any:
    """A reply without what concerns none of their queues."""
    field = _QUEUE_OF.get(operation.name)
    if who.queues is None or field is None:
        return reply

    def is_own(entry: bytes) -> bool:
        return who.may_use(map_of(entry).get(field, ""))

    if operation.name == "get":
        return [entry if entry and is_own(entry) else None for entry in reply]
    return [reply[0], *filter(is_own, reply[1:])]


def kind_of(operation: Operation, argument: Argument) -> str:
    """The type of what an argument names. Reads take any name as that of a queue."""
    if argument.name == "queue" or (operation.name, argument.name) in (("queues", "names"), ("forget", "name")):
        return "queue"
    return (argument.of.of or argument.of).name


def check_answer(who: Identity, outcome: Mapping[str, Any], follow: Sequence[bytes]) -> None:
    """Raise 403 unless all that follows a worker's answer to a push is within the queues of who registered it, as if
    it had come by `POST /done`. `follow`: specs and arguments of jobs."""
    _check_queues(who, _queues_of([outcome, *map(map_of, follow[::2])]))


def _queues_of(maps: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Those that new jobs, changes and outcomes name. A job without a queue has that of its name."""
    for spec in maps:
        for part in (spec, spec.get("move")):
            if isinstance(part, Mapping):
                names = (part.get("queue"), part.get("name"))
                yield from [name for name in names if name is not None][:1]


async def _check_jobs(engine: Engine, who: Identity, ids: Iterable[Any]) -> None:
    """Of jobs that are there; what is no id, or of no job, the operation itself refuses."""
    named = [job_id.encode(errors="surrogateescape") if isinstance(job_id, str) else job_id for job_id in ids]
    try:
        found = await engine.raw("get", *(job_id for job_id in named if isinstance(job_id, bytes)))
    except JQError as error:
        if error.code in ("INVALID", "NOTFOUND"):
            return
        raise
    _check_queues(who, [replies.document(packed)["queue"] for packed in found if packed is not None])


def _check_queues(who: Identity, queues: Iterable[Any]) -> None:
    for queue in queues:
        if queue is None:
            raise refused("name one of them as queue")
        if not who.may_use(str(queue)):
            raise refused(f"{printable(str(queue))} is not among them")


def refused(why: str) -> HttpError:
    """403 for somebody's key."""
    return HttpError("FORBIDDEN", f"this key is bound to queues: {why}")
