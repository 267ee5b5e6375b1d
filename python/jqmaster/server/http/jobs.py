"""Handlers for those who enqueue jobs and want to know what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from jqmaster.engine import durable as durables
from jqmaster.engine import packform, tracing
from jqmaster.errors import JQError
from jqmaster.server import logs
from jqmaster.server.http.asking import ask, let_in
from jqmaster.server.http.translate import no_such_job, translation
from jqmaster.server.http_error import HttpError, draining, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import ARGUMENT, Reply, Request, read_job, refuse_unknown
from jqmaster.server.reader import Reader, pack_spec

IDEMPOTENCY_KEY = "Idempotency-Key"
T = TypeVar("T")
ENDED = frozenset(("done", "error", "cancelled", "skipped"))
_CANCEL = translation("cancel", "DELETE /job/{ids[0]}")
_POLL = translation("watch", "GET /job/{ids[0]}/polling")
_CHANGE = translation("change", "PATCH /job/{jobs[0].id}")

# Always there in a job's document, nil when there is nothing to say: clients need not ask for presence.
_ALWAYS = ("worker_id", "result", "error", "message")


async def enqueue_one(master: Master, request: Request) -> Reply:
    """`POST /job`: the fields of an enqueue spec, and `argument`."""
    token = request.header(IDEMPOTENCY_KEY)
    request.rename = _rename_single
    reader = Reader(request.body)
    spec, argument = read_job(reader, "")
    if b"traceparent" in request.headers:
        tracing.carry(tracing.carried(request.headers), spec)
    durable = durables.taken([spec])
    packed = pack_spec(spec)
    # Numbers in `depends` are places in a call, so such a job does not share one with strangers.
    if token is None and durable is None and "depends" not in spec:
        await let_in(master, request.who, "enqueue", packed, argument)
        job_id, created = await master.enqueuing.enqueue(packed, argument)
    else:
        options = [] if token is None else [packform.pack({"request": token})]
        asked = (*options, packed, argument)
        job_id, created = await ask(master, request.who, "enqueue", *asked, durable=durable)
    request.told = lambda: {**logs.ids([job_id]), "created": created}
    return Reply(201 if created else 200, packform.pack({"job_id": job_id.decode("ascii")}))


def _rename_single(path: str) -> str:
    if path == "request":
        return IDEMPOTENCY_KEY
    return path.removeprefix("jobs[0]").removeprefix(".")


async def enqueue_many(master: Master, request: Request) -> Reply:
    """`POST /jobs`: `{jobs: [...], request?}` or the bare list; all of them or none."""
    token = request.header(IDEMPOTENCY_KEY)
    from_header = token is not None
    reader = Reader(request.body)
    jobs: list[tuple[dict[str, Any], bytes]] = []

    def read_jobs(path: str) -> list[tuple[dict[str, Any], bytes]]:
        return [read_job(reader, item) for item in reader.items(path)]

    bare = reader.kind() == "array"
    if bare:
        jobs = read_jobs("")
    else:
        body = reader.map("", special={"jobs": read_jobs})
        if "jobs" not in body:
            raise invalid("jobs", "missing; expected a list of jobs")
        jobs = body.pop("jobs")
        in_body = body.pop("request", None)
        refuse_unknown(body, ("jobs", "request"))
        if in_body is not None and from_header and in_body != token:
            raise invalid("request", f"differs from the header {IDEMPOTENCY_KEY}")
        token = token if from_header else in_body
    if not jobs:
        raise invalid("" if bare else "jobs", "expected 1 to 1000 jobs, got none")

    def rename(path: str) -> str:
        if path == "request" and from_header:
            return IDEMPOTENCY_KEY
        return path.removeprefix("jobs") if bare else path

    request.rename = rename
    args = [] if token is None else [pack_spec({"request": token})]
    durable = durables.taken([spec for spec, _ in jobs])
    context = tracing.carried(request.headers)
    for spec, argument in jobs:
        tracing.carry(context, spec)
        args += (pack_spec(spec), argument)
    reply = await ask(master, request.who, "enqueue", *args, durable=durable)
    request.told = lambda: logs.ids(reply[::2])
    return Reply(201 if any(reply[1::2]) else 200, packform.pack(enqueued(reply)))


def enqueued(reply: list[Any]) -> dict[str, Any]:
    """What `enqueue` says of many jobs, as a body."""
    ids = [job_id.decode("ascii") for job_id in reply[::2]]
    return {"job_ids": ids, "created": [bool(created) for created in reply[1::2]]}


async def about(job_id: str, asked: Awaitable[T]) -> T:
    """What is asked about one job. An id that cannot be one is an unknown job, not a bad request."""
    try:
        return await asked
    except JQError as error:
        if error.code in ("INVALID", "NOTFOUND"):
            raise no_such_job(job_id) from None
        raise


async def _document(master: Master, request: Request) -> bytes:
    job_id = request.params["id"]
    [document] = await about(job_id, ask(master, request.who, "get", job_id.encode()))
    if document is None:
        raise no_such_job(job_id)
    known = packform.members(document)
    return packform.extend_map(document, {key: packform.NIL for key in _ALWAYS if key not in known})


async def get_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}`: all there is to know about a job."""
    return Reply(200, await _document(master, request))


async def get_result(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/result`: the bare result; 409 when there is none (yet), 410 when it is gone."""
    job_id = request.params["id"]
    state, *result = await about(job_id, ask(master, request.who, "result", job_id.encode()))
    if not result:
        why = "keeps no result" if state == b"done" else "has no result"
        raise HttpError(409, "CONFLICT", f"the job is {state.decode()} and {why}")
    return Reply(200, result[0])


async def poll_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/polling`: the document once the job has ended, 408 when the time is up before."""
    job_id = request.params["id"]
    timeout_s = _POLL.wait_s(request.arguments)
    await let_in(master, request.who, "watch", job_id.encode())
    waiting = asyncio.ensure_future(_ended(master, job_id, timeout_s))
    state = await until_draining(master, waiting)
    if state in ENDED:
        return Reply(200, await _document(master, request))
    refuse_draining(master)
    raise HttpError(408, "TIMEOUT", f"the job has not ended within {timeout_s:g} s; it is {state}")


async def _ended(master: Master, job_id: str, timeout_s: float) -> str:
    state = await about(job_id, master.ended.wait(job_id.encode(), timeout_s))
    if state is None:
        raise no_such_job(job_id)
    return state


async def until_draining(master: Master, work: asyncio.Future[Any]) -> Any:
    """`work`'s result, or None if the master begins to drain first. `work` never outlives this call."""
    drain = asyncio.ensure_future(master.draining.wait())
    try:
        await asyncio.wait((work, drain), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        work.cancel()
        # Cancelled work may still come back with something, such as jobs just picked.
        await asyncio.wait((work,))
        return None if work.cancelled() else work.result()
    finally:
        drain.cancel()
        work.cancel()


def refuse_draining(master: Master) -> None:
    """Raise that if it is so."""
    if master.draining.is_set():
        raise draining()


async def cancel_job(master: Master, request: Request) -> Reply:
    """`DELETE /job/{id}`: cancel it; with `?force` also a running one that the settings protect."""
    job_id = request.params["id"]
    [spec], _ = _CANCEL.read(request)
    request.rename = lambda path: "dependents" if path.startswith("ids") else path
    [state] = await about(job_id, ask(master, request.who, "cancel", spec))
    state = state.decode("ascii")
    if state == "NOTFOUND":
        raise no_such_job(job_id)
    if state == "CONFLICT":
        raise HttpError(409, "CONFLICT", "the job is running; ?force cancels it all the same")
    # Cancelling again what was cancelled is a repeated request, not a conflict.
    if state in ENDED and state not in ("cancelled", "skipped"):
        raise HttpError(409, "CONFLICT", f"the job has already ended: {state}")
    return Reply(204)


async def change_one(master: Master, request: Request) -> Reply:
    """`PATCH /job/{id}`: what is to be different."""
    job_id = request.params["id"]
    change = Reader(request.body).map("", ARGUMENT)
    argument = change.pop("argument", b"")
    if "id" in change:
        raise invalid("id", "unknown field")
    request.rename = lambda path: path.removeprefix("jobs[0]").removeprefix(".") or "id"
    try:
        reply = await ask(master, request.who, "change", pack_spec({"id": job_id, **change}), argument)
    except JQError as error:
        _CHANGE.refuse_id(error, request)
        raise
    return _CHANGE.of_one(reply, request)


async def change_many(master: Master, request: Request) -> Reply:
    """`POST /jobs/change`: `{jobs: [{id, …}, …]}`."""
    reader = Reader(request.body)
    args: list[bytes] = []

    def read_jobs(path: str) -> None:
        for item in reader.items(path):
            spec = reader.map(item, ARGUMENT)
            argument = spec.pop("argument", b"")
            args.extend((pack_spec(spec), argument))

    body = reader.map("", special={"jobs": read_jobs})
    refuse_unknown(body, ("jobs",))
    if not args:
        raise invalid("jobs", "expected 1 to 1000 changes, got none")
    reply = await ask(master, request.who, "change", *args)
    return Reply(200, packform.pack({"jobs": [state.decode("ascii") for state in reply]}))
