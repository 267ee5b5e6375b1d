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
from jqmaster.server.reader import printable, unpacked

_QUEUE_OF = {"queues": "name", "alerts": "queue", "get": "queue"}
"""Operations of which a bound key gets what is of its own queues, and where an entry has its queue's name: listings
leave out the rest, `get` has nil, as of jobs that are gone."""
_NAMING = ("queue", "job", "Where", "Pick", "NewJob", "JobChange", "Outcome")
"""Types of which `_note` says what they name."""


async def check(engine: Engine, who: Identity, operation: Operation, arguments: Sequence[bytes]) -> None:
    """Raise 403 unless all that a call names is within the queues of who makes it."""
    if who.queues is None or operation.name == "get":
        return
    given = read(operation, arguments)
    if given.get("dependents") == "cancel":
        raise _refused("jobs that wait for others may be of any queue, so it may not cancel them as well")
    queues: list[Any] = []
    jobs: list[Any] = []
    for argument in operation.arguments:
        if argument.name in given:
            _note(kind_of(operation, argument), given[argument.name], queues, jobs)
    if not (queues or jobs) and operation.name in _QUEUE_OF:
        return
    if not (queues or jobs) and not (operation.is_free and not operation.restricted.keys() & given.keys()):
        raise _refused(f"{operation.name} concerns all queues, or name one of them as queue")
    check_queues(who, queues)
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
        return who.may_use(unpacked(entry).get(field, ""))

    if operation.name == "get":
        return [entry and (entry if is_own(entry) else None) for entry in reply]
    return [reply[0], *filter(is_own, reply[1:])]


def kind_of(operation: Operation, argument: Argument) -> str:
    """The type of what an argument names. Reads take any name as that of a queue."""
    if argument.name == "queue" or (operation.name, argument.name) in (("queues", "names"), ("forget", "name")):
        return "queue"
    return (argument.of.of or argument.of).name


def check_answer(who: Identity, outcome: Mapping[str, Any], follow: Sequence[bytes]) -> None:
    """Raise 403 unless all that follows a worker's answer to a push is within the queues of who registered it, as if
    it had come by `POST /done`. `follow`: specs and arguments of jobs."""
    jobs = list(_maps(follow))
    check_queues(who, of_outcomes([{**outcome, "enqueue": len(jobs)}, *jobs]))


def read(operation: Operation, arguments: Sequence[bytes]) -> dict[str, Any]:
    """A call's arguments by name, as far as they say what it is about; of what cannot be read, nothing."""
    given: dict[str, Any] = {}
    rest = list(arguments)
    for position in operation.positions:
        if position == "spec" or (position == "[spec]" and len(rest) % 2):
            spec = unpacked(rest.pop(0)) if rest else {}
            given |= spec if isinstance(spec, dict) else {}
        elif position.endswith("..."):
            given[position[:-3]], rest = rest, []
        elif rest and position != "[spec]":
            given[position] = rest.pop(0)
    return given


def _note(kind: str, value: Any, queues: list[Any], jobs: list[Any]) -> None:
    """What a value of a type names."""
    match kind:
        case "queue":
            queues += value if isinstance(value, list) else [value]
        case "job":
            jobs += value if isinstance(value, list) else [value]
        case "Where":
            queues.append(value.get("queue") if isinstance(value, dict) else None)
        case "Pick":
            named = value.get("queues", []) if isinstance(value, dict) else []
            queues += named if isinstance(named, list) else [named]
        case "NewJob":
            queues += map(_queue_of, _maps(value))
        case "JobChange":
            for one in _maps(value):
                jobs.append(one.get("id"))
                queues += [one["queue"]] if one.get("queue") is not None else []
        case "Outcome":
            queues += of_outcomes(_maps(value))


def of_outcomes(parts: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """The queues of what follows: parts are outcomes, and the specs of jobs behind them."""
    follow = 0
    for part in parts:
        if follow:
            yield _queue_of(part)
            follow -= 1
            continue
        count = part.get("enqueue")
        follow = count if isinstance(count, int) else 0
        move = part.get("move")
        if isinstance(move, dict):
            yield _queue_of(move)


def _maps(parts: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Every second argument is a spec, with a value behind it."""
    return (one for one in map(unpacked, parts[::2]) if isinstance(one, dict))


def _queue_of(job: Mapping[str, Any]) -> Any:
    queue = job.get("queue")
    return queue if queue is not None else job.get("name", "")


async def _check_jobs(engine: Engine, who: Identity, ids: Iterable[Any]) -> None:
    """Of jobs that are there; what is no id, or of no job, the operation itself refuses."""
    named = [one.encode(errors="surrogateescape") if isinstance(one, str) else one for one in ids]
    named = [one for one in named if isinstance(one, bytes)]
    try:
        found = await engine.raw("get", *named) if named else []
    except JQError as error:
        if error.code in ("INVALID", "NOTFOUND"):
            return
        raise
    check_queues(who, [replies.document(packed)["queue"] for packed in found if packed is not None])


def check_queues(who: Identity, queues: Iterable[Any]) -> None:
    """Raise 403 unless all of these are within the queues of who asks."""
    for queue in queues:
        if queue is None:
            raise _refused("name one of them as queue")
        if not who.may_use(str(queue)):
            raise _refused(f"{printable(str(queue))} is not among them")


def _refused(why: str) -> HttpError:
    return HttpError(403, "FORBIDDEN", f"this key is bound to queues: {why}")
