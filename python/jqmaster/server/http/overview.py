"""Handlers of what the master itself keeps or puts together, mostly once for all who look."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.ranking import MINUTES, Looked, ranked
from jqmaster.engine.search import MOST
from jqmaster.errors import JQError
from jqmaster.manifest.operations import OPERATIONS
from jqmaster.server import jsonform
from jqmaster.server.http.events import ALIVE_EVERY_S, EVENT_STREAM, sent
from jqmaster.server.http.jobs import refuse_draining
from jqmaster.server.http.translate import Translation
from jqmaster.server.http_error import HttpError, from_engine, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import Reader, printable

_RANKING = Translation(OPERATIONS["ranking"])
_TRENDS, _CHANGES = Translation(OPERATIONS["trends"]), Translation(OPERATIONS["changes"])


async def get_overview(master: Master, _request: Request) -> Reply:
    """`GET /overview`: counts, rates, workers and alerts, two seconds old at most."""
    refuse_draining(master)
    return Reply(200, await master.overview.document())


async def overview_events(master: Master, _request: Request) -> Reply:
    """`GET /overview/events`: the same, every two seconds."""
    refuse_draining(master)
    coming = master.overview.follow(ALIVE_EVERY_S)
    return Reply(200, content_type=EVENT_STREAM, stream=sent(master, coming, _piece))


async def ranking(master: Master, request: Request) -> Reply:
    """`GET /queues/ranking`: queues in order of how they do, as far as they were looked at."""
    wanted = msgpack.unpackb(_RANKING.read(request)[0], unicode_errors="surrogateescape")
    minutes = wanted.pop("minutes", MINUTES)
    ranked(Looked([], False), **wanted)
    rows, age_ms = await master.rankings.look(minutes)
    answer = ranked(rows, **wanted)
    answer["queues"] = await master.rankings.freshen(minutes, answer["queues"])
    return Reply(200, packform.pack({**answer, "age_ms": age_ms}))


async def search(master: Master, request: Request) -> Reply:
    """`GET /search`: a few of all kinds whose names contain a text, and jobs that it describes."""
    text = request.arguments.get("q", "")
    count = request.arguments.get("count", "5")
    if not re.fullmatch(r"[0-9]{1,2}", count) or not 1 <= int(count) <= MOST:
        raise invalid("count", f"expected an integer from 1 to {MOST}, got {printable(count, 40)!r}")
    return Reply(200, packform.pack(await master.engine.search(text, count=int(count))))


async def get_trends(master: Master, request: Request) -> Reply:
    """`GET /trends`: the largest queues or names, or outcomes, over time."""
    asked = _asked(_TRENDS, request)
    refuse_draining(master)
    return Reply(200, await master.trends.trends(asked["split"], asked["from_ms"], asked.get("to_ms"), asked["top"]))


async def get_changes(master: Master, request: Request) -> Reply:
    """`GET /changes`: what is different since a moment."""
    asked = _asked(_CHANGES, request)
    refuse_draining(master)
    return Reply(200, await master.trends.changes(asked["since_ms"], asked["span"], asked["top"]))


def _asked(operation: Translation, request: Request) -> dict[str, Any]:
    defaults = {field.name: field.default for field in operation.operation.fields if field.default is not None}
    fields: dict[str, Any] = Reader(operation.read(request)[0]).map("")
    for field in operation.operation.fields:
        value, (least, most) = fields.get(field.name), field.type[1:3]
        if field.required and value is None:
            raise HttpError(400, "INVALID", f"{field.name} is missing", field.name)
        if field.type.kind == "integer" and value is not None and not least <= value <= most:
            raise invalid(field.name, f"expected an integer from {least} to {most}, got {value}")
    return defaults | fields


@lru_cache(maxsize=2)
def _event(packed: bytes) -> bytes:
    """Made once for all who listen."""
    return b"data: %s\n\n" % jsonform.to_json(packed)


def _piece(result: bytes | JQError) -> bytes:
    if isinstance(result, JQError):
        return b"event: unavailable\ndata: %s\n\n" % jsonform.to_json(packform.pack(from_engine(result, None).body()))
    return _event(result)
