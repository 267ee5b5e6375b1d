"""The one request about jobs that is more than a call of a script: to wait for an end."""

from __future__ import annotations

import asyncio

from jqmaster.errors import JQError
from jqmaster.server.http.asking import let_in, refuse_draining, until_draining
from jqmaster.server.http.translate import no_such_job, translation
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

ENDED = frozenset(("done", "error", "cancelled", "skipped"))
_POLL = translation("watch", "GET /job/{ids[0]}/polling")
_GET = translation("get", "GET /job/{ids[0]}")


async def poll_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/polling`: the document once the job has ended, 408 when the time is up before."""
    job_id = request.params["id"]
    timeout_s = _POLL.wait_s(request.arguments)
    await let_in(master, request.who, _POLL.operation, [job_id.encode()])
    waiting = asyncio.ensure_future(_ended(master, request, timeout_s))
    state = await until_draining(master, waiting)
    if state in ENDED:
        return await _GET(master, request)
    refuse_draining(master)
    raise HttpError(408, "TIMEOUT", f"the job has not ended within {timeout_s:g} s; it is {state}")


async def _ended(master: Master, request: Request, timeout_s: float) -> str:
    job_id = request.params["id"]
    try:
        state = await master.ended.wait(job_id.encode(), timeout_s)
    except JQError as error:
        _POLL.refuse_id(error, request)
        raise
    if state is None:
        raise no_such_job(job_id)
    return state
