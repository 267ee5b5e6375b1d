"""Handlers of who waits: for the end of a job, or for events as they happen (server-sent events, WHATWG HTML, 9.2)."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.errors import JQError
from jqmaster.server import jsonform
from jqmaster.server.events import Event
from jqmaster.server.http import within
from jqmaster.server.http.calls import refuse_draining, unless
from jqmaster.server.http.own import own
from jqmaster.server.http.translate import no_such_job, translation
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import members, printable, unpacked

EVENT_STREAM = "text/event-stream"
LAST_ID = "Last-Event-ID"
ALIVE_EVERY_S = 15.0
_BLOBS = ("argument", "result", "error")
_STREAM_ID = re.compile(r"[0-9]{1,15}-[0-9]{1,9}")
_ALIVE = b":\n\n"
ENDED = frozenset(("done", "error", "cancelled", "skipped"))
_POLL = translation("watch", "GET /job/{ids[0]}/polling")
_GET = translation("get", "GET /job/{ids[0]}")
_TRACK = translation("track", "POST /job/{ids[0]}/track")
_MISSED = b"event: missed\ndata: {}\n\n"


async def poll_job(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/polling`: the document once the job has ended, 408 when the time is up before."""
    timeout_s = _POLL.wait_s(request.query.get("timeout"))
    job_id = request.params["id"].encode()
    await within.check(master.engine, request.who, _POLL.operation, [job_id])
    try:
        state = await unless(master.draining.wait(), master.ended.wait(job_id, timeout_s))
    except JQError as error:
        _POLL.refuse_id(error, request)
        raise
    refuse_draining(master)
    if state is None:
        raise no_such_job(request.params["id"])
    if state in ENDED:
        return await _GET(master, request)
    raise HttpError(408, "TIMEOUT", f"the job has not ended within {timeout_s:g} s; it is {state}")


@lru_cache(maxsize=2048)
def _line(event_id: str, packed: bytes) -> bytes:
    """Made once for all who listen."""
    return b"id: %s\ndata: %s\n\n" % (event_id.encode(), jsonform.to_json(packed))


@own(
    "events",
    """Follow everything.
@reply Event
@errors INVALID, CONFLICT
@role viewer
@http GET /events -> events
@header Last-Event-ID  the id of the last event that was seen""",
)
async def all_events(master: Master, request: Request) -> Reply:
    """`GET /events`: every transition from now on, or from `Last-Event-ID` on as far as they are kept."""
    refuse_draining(master)
    last = request.header(LAST_ID) or None
    if last is not None and not _STREAM_ID.fullmatch(last):
        raise invalid(LAST_ID, f"expected the id of an event, got {printable(last, 40)!r}")
    if not (await master.engine.config())["events_max"]:
        raise HttpError(409, "CONFLICT", "the setting events_max is 0: no events are written")
    # Before the answer begins, so that what is wrong can still be said.
    start, is_missing = await master.events.resume(last) if last else (await master.events.last_id(), False)
    coming = master.events.after(start, ALIVE_EVERY_S)
    return Reply(200, content_type=EVENT_STREAM, stream=sent(master, coming, _page, _MISSED if is_missing else b""))


def _page(events: list[Event]) -> bytes:
    """One piece for all that came together: each costs as much on its way out as many events."""
    return b"".join([_line(*event) for event in events]) or _MISSED


async def sent(
    master: Master, coming: AsyncGenerator[Any, None], piece_of: Callable[[Any], bytes], first: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """What comes as a stream of events, until the master stops; a sign of life for each None."""
    # At once, so that the client knows that it is connected.
    yield first + _ALIVE
    async with aclosing(coming):
        async for page in coming:
            if master.draining.is_set():
                return
            yield _ALIVE if page is None else piece_of(page)


@own(
    "job_events",
    """Follow a job.
@arg id job
@reply Event
@errors INVALID, NOTFOUND
@role viewer, pusher
@bound any
@http GET /job/{id}/events -> events 200 204
@header Last-Event-ID  the id of the last event that was seen""",
)
async def job_events(master: Master, request: Request) -> Reply:
    """`GET /job/{id}/events`: tracks a job; its state now, and each transition until it has ended."""
    refuse_draining(master)
    job_id = request.params["id"]
    spec = packform.pack({"ids": [job_id]})
    state = msgpack.unpackb((await _TRACK(master, request)).body)["status"]
    last = request.header(LAST_ID)
    if state in ENDED and last is not None and last.partition("-")[0] == state:
        # A browser that has seen the end asks again unless it is told not to (204).
        return Reply(204)
    return Reply(200, content_type=EVENT_STREAM, stream=_of_job(master, job_id, spec))


async def _of_job(master: Master, job_id: str, spec: bytes) -> AsyncGenerator[bytes, None]:
    async with master.events.of_job(job_id) as messages:
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
            yield _line(f"{event['state']}-{event['attempt']}", packed)
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
