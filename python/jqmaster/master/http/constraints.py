"""Handlers for constraints: limits on jobs, what they hold, and why a job waits."""

from __future__ import annotations

from jqmaster.master.http.jobs import ask
from jqmaster.master.http.work import page, page_reply
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.errors import HttpError, invalid
from jqmaster.wire.message import Reply, Request, refuse_unknown

_MATCH = frozenset(("match",))
_FIELDS = ("match", "by", "concurrency", "rate", "cost", "order")
_BY = frozenset(("by",))
_HOLD_FIELDS = ("by", "seconds")


async def set_constraint(master: Master, request: Request) -> Reply:
    """`PUT /constraint/{id}`: create it, or replace it whole. The matcher goes to the engine unread."""
    body = packform.Reader(request.body).map("", _MATCH)
    # The engine knows `id` too, which here is the path's.
    refuse_unknown(body, _FIELDS)
    if "match" not in body:
        raise invalid("match", "missing; expected a map of conditions")
    match = body.pop("match")
    spec = {"id": request.params["id"], **body}
    return Reply(200, await master.engine.call("constrain", packform.pack_spec(spec), match))


async def get_constraint(master: Master, request: Request) -> Reply:
    """`GET /constraint/{id}`: its definition, and how much of it is in use."""
    constraint_id = request.params["id"]
    request.rename = lambda path: "id" if path.startswith("ids") else path
    _cursor, *documents = await master.engine.call("constraints", packform.pack({"ids": [constraint_id]}))
    if not documents:
        raise HttpError(404, "NOTFOUND", f"id: no such constraint: {packform.printable(constraint_id, 255)}", "id")
    return Reply(200, documents[0])


async def delete_constraint(master: Master, request: Request) -> Reply:
    """`DELETE /constraint/{id}`: what it held is free at once."""
    await master.engine.call("unconstrain", packform.pack({"id": request.params["id"]}))
    return Reply(204)


async def list_constraints(master: Master, request: Request) -> Reply:
    """`GET /constraints`: a page of constraints in order of id."""
    return page_reply("constraints", await master.engine.call("constraints", packform.pack(page(request))))


async def get_usage(master: Master, request: Request) -> Reply:
    """`GET /constraint/{id}/usage`: a page of its keys in use."""
    spec = {"id": request.params["id"], **page(request)}
    return page_reply("keys", await master.engine.call("usage", packform.pack(spec)))


async def hold_constraint(master: Master, request: Request) -> Reply:
    """`POST /constraint/{id}/hold`: `{by?, seconds}` closes a key for so long; 0 seconds open it."""
    # `by` goes to the engine unread, as it must equal what was found in a job's argument.
    body = packform.Reader(request.body).map("", _BY)
    refuse_unknown(body, _HOLD_FIELDS)
    by = {"by": body.pop("by")} if "by" in body else {}
    # Nothing else can spoil the spec as such: it is binary data there, which no spec may hold.
    request.rename = lambda path: "by" if path == "spec" else path
    spec = packform.pack_spec({"id": request.params["id"], **body})
    until_ms = await master.engine.call("hold", packform.extend_map(spec, by))
    return Reply(200, packform.pack({"until_ms": until_ms}))


async def explain_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/explain`: why a job waits."""
    job_id = request.params["id"]
    return Reply(200, await ask(master, "explain", job_id, job_id.encode()))
