"""Handlers for recurring jobs."""

from __future__ import annotations

import re
from typing import Any

from jqmaster.master.http.work import page_reply, paging
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.errors import HttpError, invalid
from jqmaster.wire.message import Reply, Request, refuse_unknown

_ARGUMENT = frozenset(("argument",))
_FIELDS = (
    "every", "offset", "cron", "utc_offset", "start", "end", "limit", "catch_up", "backlog", "paused", "job",
    "argument",
)  # fmt: skip


async def set_schedule(master: Master, request: Request) -> Reply:
    """`PUT /schedule/{id}`: creates it, or replaces it whole."""
    body = packform.Reader(request.body).map("", _ARGUMENT)
    refuse_unknown(body, _FIELDS)
    argument = body.pop("argument", packform.NIL)
    spec = packform.pack_spec({"id": request.params["id"], **body})
    return Reply(200, await master.engine.call("schedule", spec, argument))


async def get_schedule(master: Master, request: Request) -> Reply:
    """`GET /schedule/{id}`, with `next`: and so many moments to come."""
    schedule_id = request.params["id"]
    request.rename = lambda path: "id" if path.startswith("ids") else path
    spec = {"ids": [schedule_id], **_next(request.arguments(("next",)))}
    _cursor, *documents = await master.engine.call("schedules", packform.pack(spec))
    if not documents:
        raise HttpError(404, "NOTFOUND", f"id: no such schedule: {packform.printable(schedule_id, 255)}", "id")
    return Reply(200, documents[0])


async def delete_schedule(master: Master, request: Request) -> Reply:
    """`DELETE /schedule/{id}`: jobs that it has made stay."""
    await master.engine.call("unschedule", packform.pack({"id": request.params["id"]}))
    return Reply(204)


async def list_schedules(master: Master, request: Request) -> Reply:
    """`GET /schedules`: a page of them in order of id."""
    arguments = request.arguments(("cursor", "count", "next"))
    spec = {**paging(arguments), **_next(arguments)}
    return page_reply("schedules", await master.engine.call("schedules", packform.pack(spec)))


def _next(arguments: dict[str, str]) -> dict[str, Any]:
    if "next" not in arguments:
        return {}
    if not re.fullmatch(r"[0-9]{1,6}", arguments["next"]):
        shown = packform.printable(arguments["next"], 40)
        raise invalid("next", f"expected an integer from 0 to 100, got {shown!r}")
    return {"next": int(arguments["next"])}
