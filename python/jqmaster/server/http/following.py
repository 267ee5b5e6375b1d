"""Handlers of one job: to enqueue it, to see it, and to wait for its end."""

from __future__ import annotations

from jqmaster.engine import packform, tracing
from jqmaster.engine.calling import contract_of
from jqmaster.server.http import within
from jqmaster.server.http.calls import MOST_WAIT_S, refuse_draining, run, unless
from jqmaster.server.http.own import own
from jqmaster.server.http.translate import no_such_job
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import item

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
    arguments = item(request.body, "NewJob", tracing.carried(request.headers))
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
