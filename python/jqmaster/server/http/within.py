"""What a key that is bound to queues may ask for: what names its queues, or jobs of them. All else is refused,
so that an operation that is new is, too.

Looked at are the queues and jobs that a request names. Leases prove themselves by their tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError
from jqmaster.manifest.operation import Operation
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.message import Identity, Request
from jqmaster.server.reader import check, printable

Body = dict[str, Any]
# What concerns no queue, and leases.
_FREE = frozenset(("config", "heartbeat", "release", "unregister"))


async def within_queues(engine: Engine, operation: Operation, request: Request) -> None:
    """Raise 403 unless all that a request names is within the queues of who sends it."""
    who = request.who
    if operation.role is None or operation.name in _FREE:
        return
    if operation.path.startswith("/queue/"):
        _check(who, [request.params["name"]])
    elif operation.name in ("jobs", "stats"):
        _check(who, [request.arguments.get("queue")])
    elif operation.name in _QUEUES:
        _check(who, _QUEUES[operation.name](_body(request)))
    elif operation.path.startswith("/job/"):
        if request.arguments.get("dependents") == "cancel":
            raise _dependents()
        await _check_jobs(engine, who, [request.params["id"]])
        if operation.name in ("change.one", "retry.one"):
            _check_new(who, _body(request))
    elif operation.name in ("cancel", "retry", "discard", "kick", "change"):
        await _check_many(engine, who, _body(request))
    else:
        raise _refused(f"{operation.name} concerns all queues")


def check_answer(who: Identity, outcome: Body, follow: Sequence[bytes]) -> None:
    """Raise 403 unless all that follows a worker's answer to a push is within the queues of who registered it, as if
    it had come by `POST /done`. `follow`: specs and arguments of jobs."""
    _check(who, _of_finish({**outcome, "enqueue": [_unpacked(spec) for spec in follow[::2]]}))


async def _check_many(engine: Engine, who: Identity, body: Body) -> None:
    if body.get("dependents") == "cancel":
        raise _dependents()
    _check_new(who, body)
    where = body.get("where")
    if where is not None:
        _check(who, [where.get("queue") if isinstance(where, dict) else None])
    ids = body.get("ids")
    if ids is None:
        ids = [job.get("id") for job in _maps(body.get("jobs"))]
    await _check_jobs(engine, who, ids if isinstance(ids, list) else [])


def _check_new(who: Identity, body: Body) -> None:
    """The queues to which jobs are to go."""
    _check(who, [job["queue"] for job in (body, *_maps(body.get("jobs"))) if job.get("queue") is not None])


async def _check_jobs(engine: Engine, who: Identity, ids: Iterable[Any]) -> None:
    """Of jobs that are there; what is no id, or of no job, the operation itself refuses."""
    named = [one.encode(errors="surrogateescape") for one in ids if isinstance(one, str)]
    if not named:
        return
    try:
        found = await engine.raw("get", *named)
    except JQError as error:
        if error.code in ("INVALID", "NOTFOUND"):
            return
        raise
    _check(who, [replies.document(packed)["queue"] for packed in found if packed is not None])


def _check(who: Identity, queues: Iterable[Any]) -> None:
    for queue in queues:
        if queue is None:
            raise _refused("name one of them as queue")
        if not who.may_use(str(queue)):
            raise _refused(f"{printable(str(queue))} is not among them")


def _refused(why: str) -> HttpError:
    return HttpError(403, "FORBIDDEN", f"this key is bound to queues: {why}")


def _dependents() -> HttpError:
    return _refused("jobs that wait for others may be of any queue, so it may not cancel them as well")


def _body(request: Request) -> Body:
    """The whole body; the handler reads it again, and more strictly."""
    if not request.body:
        return {}
    check(request.body)
    try:
        found = _unpacked(request.body)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        raise invalid(None, "the body cannot be read") from None
    # Of many jobs the bare list will do.
    return found if isinstance(found, dict) else {"jobs": found}


def _unpacked(packed: bytes) -> Any:
    return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogateescape")


# -- the queues that a body names --------------------------------------------------------------------------------


def _maps(listed: Any) -> Iterator[Body]:
    return (one for one in listed if isinstance(one, dict)) if isinstance(listed, list) else iter(())


def _of_job(job: Body) -> Any:
    queue = job.get("queue")
    return queue if queue is not None else job.get("name", "")


def _of_pick(body: Body) -> Iterable[Any]:
    queues = body.get("queues", [])
    return queues if isinstance(queues, list) else [queues]


def _of_finish(body: Body) -> Iterator[Any]:
    for outcome in (body, *_maps(body.get("outcomes"))):
        yield from map(_of_job, _maps(outcome.get("enqueue")))
        move = outcome.get("move")
        if isinstance(move, dict):
            yield _of_job(move)
    pick = body.get("pick")
    if isinstance(pick, dict):
        yield from _of_pick(pick)


_QUEUES: dict[str, Callable[[Body], Iterable[Any]]] = {
    "enqueue": lambda body: [_of_job(body)],
    "enqueue.many": lambda body: map(_of_job, _maps(body.get("jobs"))),
    "pick": _of_pick,
    "register": _of_pick,
    "finish": _of_finish,
}
