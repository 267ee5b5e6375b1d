"""Handlers that change jobs which are there: one by its path, or many by their ids or by what they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jqmaster.errors import JQError
from jqmaster.master.http.jobs import ask, no_such_job
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.errors import HttpError, from_engine, invalid
from jqmaster.wire.fields import CHANGED
from jqmaster.wire.message import Reply, Request, refuse_unknown

_ARGUMENT = frozenset(("argument",))
_CHANGES = (*CHANGED, "argument")
_LINKS = ("add", "remove", "if_failed")
_CONFLICTS = {
    "change": "the job runs or has ended; of such only the tags can be changed",
    "kick": "the job does not run",
    "retry": "the job is neither error, cancelled nor retrying, or its unique key is another's by now",
    "discard": "the job is running",
}


def _body(request: Request) -> dict[str, Any]:
    return packform.Reader(request.body).map("") if request.body else {}


def _first(prefix: str) -> Callable[[str], str]:
    """Takes the list away that the engine was given for the one thing that the request is about."""
    return lambda path: path.removeprefix(f"{prefix}[0]").removeprefix(".") or "id"


async def _one(master: Master, request: Request, script: str, *args: Any) -> str:
    """The state after a script that answers for each of its jobs, here one. Raises 404 and 409."""
    job_id = request.params["id"]
    try:
        [state] = await master.engine.call(script, *args)
    except JQError as error:
        _refuse_id(error, request)
        raise
    state = state.decode("ascii")
    if state == "NOTFOUND":
        raise no_such_job(job_id)
    if state == "CONFLICT":
        raise HttpError(409, "CONFLICT", _CONFLICTS[script])
    return str(state)


def _refuse_id(error: JQError, request: Request) -> None:
    """An id that cannot be one is an unknown job, not a bad request."""
    if error.path is not None and re.fullmatch(r"id|ids\[0\]|jobs\[0\]\.id", error.path):
        if error.code in ("INVALID", "NOTFOUND"):
            raise no_such_job(request.params["id"]) from None
        raise from_engine(error, None) from None


def _status(state: str) -> Reply:
    return Reply(200, packform.pack({"status": state}))


async def change_job(master: Master, request: Request) -> Reply:
    """`PATCH /job/{id}`: what is named changes; without `argument` the job's own stays."""
    body = packform.Reader(request.body).map("", _ARGUMENT)
    refuse_unknown(body, _CHANGES)
    argument = body.pop("argument", b"")
    request.rename = _first("jobs")
    spec = packform.pack_spec({"id": request.params["id"], **body})
    return _status(await _one(master, request, "change", spec, argument))


async def kick_job(master: Master, request: Request) -> Reply:
    """`POST /job/{id}/kick`: takes it from its worker; `{delay?}`."""
    body = _body(request)
    refuse_unknown(body, ("delay",))
    request.rename = _first("ids")
    state = await _one(master, request, "kick", packform.pack_spec({"ids": [request.params["id"]], **body}))
    master.dispatch.poke()
    return _status(state)


async def retry_job(master: Master, request: Request) -> Reply:
    """`POST /job/{id}/retry`: it runs again."""
    request.rename = _first("ids")
    return _status(await _one(master, request, "retry", packform.pack({"ids": [request.params["id"]]})))


async def discard_job(master: Master, request: Request) -> Reply:
    """`DELETE /job/{id}/record`: removes all there is of it."""
    request.rename = _first("ids")
    return _status(await _one(master, request, "discard", packform.pack({"ids": [request.params["id"]]})))


async def depend_job(master: Master, request: Request) -> Reply:
    """`POST /job/{id}/depends`: `{add?, remove?, if_failed?}` changes what it waits for."""
    body = _body(request)
    refuse_unknown(body, _LINKS)
    spec = packform.pack_spec({"id": request.params["id"], **body})
    try:
        state = await master.engine.call("depend", spec)
    except JQError as error:
        _refuse_id(error, request)
        raise
    return _status(state.decode("ascii"))


async def track_job(master: Master, request: Request) -> Reply:
    """`POST /job/{id}/track`: `{on?}`: publish each of its transitions, or no more."""
    body = _body(request)
    refuse_unknown(body, ("on",))
    job_id = request.params["id"]
    request.rename = _first("ids")
    try:
        [state] = await master.engine.call("track", packform.pack_spec({"ids": [job_id], **body}))
    except JQError as error:
        _refuse_id(error, request)
        raise
    if state is None:
        raise no_such_job(job_id)
    return _status(state.decode("ascii"))


async def job_history(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/history`: what happened to it."""
    job_id = request.params["id"]
    return Reply(200, await ask(master, "history", job_id, job_id.encode()))


# --- many at once ---


async def change_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/change`: `{jobs: [{id, …}, …]}`."""
    reader = packform.Reader(request.body)
    args: list[bytes] = []

    def read_jobs(path: str) -> None:
        for item in reader.items(path):
            spec = reader.map(item, _ARGUMENT)
            argument = spec.pop("argument", b"")
            args.extend((packform.pack_spec(spec), argument))

    body = reader.map("", special={"jobs": read_jobs})
    refuse_unknown(body, ("jobs",))
    if not args:
        raise invalid("jobs", "expected 1 to 1000 changes, got none")
    return _states(await master.engine.call("change", *args))


def _states(reply: list[Any]) -> Reply:
    return Reply(200, packform.pack({"jobs": [state.decode("ascii") for state in reply]}))


async def _many(master: Master, request: Request, script: str, fields: tuple[str, ...]) -> Reply:
    body = packform.Reader(request.body).map("")
    refuse_unknown(body, fields)
    reply = await master.engine.call(script, packform.pack_spec(body))
    master.dispatch.poke()
    if body.get("where") is None:
        return _states(reply)
    cursor, changed = reply
    return Reply(200, packform.pack({"cursor": cursor.decode(), "changed": changed}))


async def retry_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/retry`: `{ids}` or `{where, cursor?, count?}`."""
    return await _many(master, request, "retry", ("ids", "where", "cursor", "count"))


async def discard_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/discard`: likewise."""
    return await _many(master, request, "discard", ("ids", "where", "cursor", "count"))


async def cancel_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/cancel`: likewise, with `force` and `dependents`."""
    fields = ("ids", "where", "cursor", "count", "force", "dependents")
    return await _many(master, request, "cancel", fields)


async def kick_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/kick`: `{ids, delay?}`."""
    return await _many(master, request, "kick", ("ids", "delay"))
