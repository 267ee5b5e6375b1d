"""Handlers of one job: to enqueue it, to see it, and to wait for its end; whether this server is well; and the API's
own description."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import resources
from pathlib import Path

from jqmaster.engine import packform, tracing
from jqmaster.engine.calling import contract_of
from jqmaster.errors import Unavailable
from jqmaster.server.http import within
from jqmaster.server.http.calls import MOST_WAIT_S, refuse_draining, run, unless
from jqmaster.server.http.own import own
from jqmaster.server.http.translate import no_such_job
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import item, map_with

ENDED = frozenset(("done", "error", "cancelled", "skipped"))
READY_S = 1.0


@own
async def enqueue_one(master: Master, request: Request) -> Reply:
    """Enqueue a job.

    @arg body NewJob
    @arg request token?  the same token gives the same job again: repeating is harmless
    @reply {job_id: job}
    @errors INVALID field, FULL queue, NOTFOUND depends[i], CONFLICT depends
    @role pusher
    @bound any
    @http POST /job
    """
    request.rename = lambda path: path.removeprefix("options.").removeprefix("jobs[0]").removeprefix(".")
    arguments = item(request.body, "NewJob", tracing.carried(request.headers))
    if (token := request.header("Idempotency-Key")) is not None:
        arguments.insert(0, map_with({"request": token}))
    job_id, is_new = await run(master, request, contract_of("enqueue"), arguments)
    return Reply(201 if is_new else 200, packform.pack({"job_id": job_id.decode()}))


@own
async def job(master: Master, request: Request) -> Reply:
    """A job as it is now.

    @arg id job
    @reply Job
    @errors NOTFOUND id
    @role viewer, pusher
    @bound any
    @http GET /job/{id}
    """
    [document] = await run(master, request, contract_of("get"), [request.params["id"].encode()])
    if document is None:
        raise no_such_job(request.params["id"])
    return Reply(200, document)


@own
async def poll_job(master: Master, request: Request) -> Reply:
    """Wait for a job's end: its document, or 408 when the time is up before.

    @arg id job
    @arg timeout seconds? 0..300 = 5  how long to wait, at most
    @reply Job
    @errors INVALID timeout, NOTFOUND id, TIMEOUT
    @role viewer, pusher
    @bound any
    @http GET /job/{id}/polling
    """
    timeout_s = seconds(request.query.get("timeout", 5), "timeout", MOST_WAIT_S)
    job_id = request.params["id"].encode()
    await within.check(master.engine, request.who, contract_of("watch"), {"ids": [job_id]})
    state = await unless(master.ended.wait(job_id, timeout_s), master.draining.wait())
    refuse_draining(master)
    if state is None:
        raise no_such_job(request.params["id"])
    if state in ENDED:
        return await job.handler(master, request)
    raise HttpError("TIMEOUT", f"the job has not ended within {timeout_s:g} s; it is {state}")


@own
async def alive(_master: Master, _request: Request) -> Reply:
    """Whether this server runs; asks nobody.

    @reply {status: text}
    @errors INTERNAL
    @role anybody
    @http GET /alive
    """
    return Reply(200, packform.pack({"status": "ok"}))


@own
async def health(master: Master, _request: Request) -> Reply:
    """Whether this server can serve.

    @reply {status: text, form: text}
    @errors UNAVAILABLE
    @role anybody
    @http GET /health
    """
    refuse_draining(master)
    try:
        async with asyncio.timeout(READY_S):
            await master.engine.config()  # which also finds a namespace that is missing, or of another schema
            form = await master.engine.form_in_use()
    except TimeoutError as late:
        raise Unavailable(f"Redis did not answer within {READY_S:g} s", late) from late
    return Reply(200, packform.pack({"status": "ok", "form": form}))


@cache
def document(name: str) -> bytes:
    """An OpenAPI document (`master.yaml`, `worker.yaml`), from the installed package or the source tree."""
    packaged = resources.files("jqmaster").joinpath("openapi", name)
    if packaged.is_file():
        return packaged.read_bytes()
    return (Path(__file__).resolve().parents[4] / "openapi" / name).read_bytes()


@own
async def openapi(_master: Master, _request: Request) -> Reply:
    """This document.

    @reply yaml
    @errors INTERNAL
    @role anybody
    @http GET /openapi.yaml
    """
    return Reply(200, document("master.yaml"), "application/yaml")


@own
async def worker_openapi(_master: Master, _request: Request) -> Reply:
    """The API that a worker offers, to which jobs are pushed.

    @reply yaml
    @errors INTERNAL
    @role anybody
    @http GET /worker/openapi.yaml
    """
    return Reply(200, document("worker.yaml"), "application/yaml")
