"""Handlers of one job: to enqueue it, to see it, to wait for its end, and to follow it as server-sent events (WHATWG
HTML, 9.2)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import msgpack

from jqmaster.engine import packform, tracing
from jqmaster.engine.calling import contract_of
from jqmaster.server import jsonform
from jqmaster.server.http import within
from jqmaster.server.http.calls import MOST_WAIT_S, refuse_draining, run, unless
from jqmaster.server.http.own import own
from jqmaster.server.http.translate import no_such_job
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import ITEMS, members, parts_of, unpacked

EVENT_STREAM = "text/event-stream"
LAST_ID = "Last-Event-ID"
ALIVE_EVERY_S = 15.0
_BLOBS = ("argument", "result", "error")
_ALIVE = b":\n\n"
ENDED = frozenset(("done", "error", "cancelled", "skipped"))


@own(
    "enqueue_one",
    """Enqueue a job.
@arg body NewJob
@arg request token?  the same token gives the same job again: repeating is harmless
@reply {job_id: job}
@errors INVALID field, FULL queue, NOTFOUND depends[i], CONFLICT depends
@role pusher
@bound any
@http POST /job""",
)
async def enqueue_one(master: Master, request: Request) -> Reply:
    """`POST /job`: 201, or 200 for one that was there already."""
    request.rename = lambda path: path.removeprefix("options.").removeprefix("jobs[0]").removeprefix(".")
    arguments = parts_of(request.body, ITEMS["NewJob"], tracing.carried(request.headers))
    if (token := request.header("Idempotency-Key")) is not None:
        arguments.insert(0, packform.pack({"request": token}))
    job_id, is_new = await run(master, request, contract_of("enqueue"), arguments)
    return Reply(201 if is_new else 200, packform.pack({"job_id": job_id.decode()}))


@own(
    "job",
    """A job as it is now.
@arg id job
@reply Job
@errors NOTFOUND id
@role viewer, pusher
@bound any
@http GET /job/{id}""",
)
async def get_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}`."""
    [document] = await run(master, request, contract_of("get"), [request.params["id"].encode()])
    if document is None:
        raise no_such_job(request.params["id"])
    return Reply(200, document)


@own(
    "poll_job",
    """Wait for a job's end: its document, or 408 when the time is up before.
@arg id job
@arg timeout seconds? 0..300 = 5  how long to wait, at most
@reply Job
@errors INVALID timeout, NOTFOUND id, TIMEOUT
@role viewer, pusher
@bound any
@http GET /job/{id}/polling""",
)
async def poll_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/polling`."""
    timeout_s = seconds(request.query.get("timeout", 5), "timeout", MOST_WAIT_S)
    job_id = request.params["id"].encode()
    await within.check(master.engine, request.who, contract_of("watch"), [job_id])
    state = await unless(master.draining.wait(), master.ended.wait(job_id, timeout_s))
    refuse_draining(master)
    if state is None:
        raise no_such_job(request.params["id"])
    if state in ENDED:
        return await get_job.handler(master, request)
    raise HttpError(408, "TIMEOUT", f"the job has not ended within {timeout_s:g} s; it is {state}")


@own(
    "job_events",
    """Follow a job.
@arg id job
@reply events
@errors INVALID, NOTFOUND
@role viewer, pusher
@bound any
@http GET /job/{id}/events""",
)
async def job_events(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/events`: tracks a job; its state now, and each transition until it has ended."""
    refuse_draining(master)
    job_id = request.params["id"]
    spec = packform.pack({"ids": [job_id]})
    [state] = await run(master, request, contract_of("track"), [spec])
    if state is None:
        raise no_such_job(job_id)
    state = state.decode()
    last = request.header(LAST_ID)
    if state in ENDED and last is not None and last.partition("-")[0] == state:
        # A browser that has seen the end asks again unless it is told not to (204).
        return Reply(204)
    return Reply(200, content_type=EVENT_STREAM, stream=_of_job(master, job_id, spec))


async def _of_job(master: Master, job_id: str, spec: bytes) -> AsyncGenerator[bytes, None]:
    async with master.ended.of_job(job_id) as messages:
        while not master.draining.is_set():
            try:
                # By chance, as many streams that began together should not all be written to at once.
                async with asyncio.timeout(ALIVE_EVERY_S * random.uniform(0.7, 1.0)):
                    packed = await messages.get()
            except TimeoutError:
                yield _ALIVE
                continue
            if master.draining.is_set():
                return
            if packed is None:
                # Just subscribed, or subscribed again after a gap: how it stands now.
                packed = await _now(master, job_id, spec)
                if packed is None:
                    return
            event = msgpack.unpackb(packed)
            event_id = f"{event['state']}-{event['attempt']}"
            yield b"id: %s\ndata: %s\n\n" % (event_id.encode(), jsonform.to_json(packed))
            if event["state"] in ENDED:
                return


async def _now(master: Master, job_id: str, spec: bytes) -> bytes | None:
    """A job as an event would show it, without `from`; None when it is gone."""
    [state] = await master.engine.raw("track", spec)
    [document] = await master.engine.raw("get", job_id.encode())
    if state is None or document is None:
        return None
    job = {name: unpacked(value) for name, value in members(document).items() if name not in _BLOBS}
    times = (job.get("ended_ms"), job.get("started_ms"), job["created_ms"])
    return packform.pack(
        {
            "id": job_id, "name": job["name"], "queue": job["queue"], "state": job["status"],
            "attempt": job["attempt"], "worker": job.get("worker_id") or "",
            "time_ms": next(moment for moment in times if moment),
        }
    )  # fmt: skip
