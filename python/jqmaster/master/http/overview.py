"""Handlers of the overview: one document for all who look, now or as it changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache
from typing import Any

from jqmaster.errors import JQError, NotFound
from jqmaster.master.http.events import ALIVE_EVERY_S, EVENT_STREAM
from jqmaster.master.http.jobs import draining
from jqmaster.master.http.translate import Translation
from jqmaster.master.master import Master
from jqmaster.master.overview import Overview
from jqmaster.master.trends import Trends
from jqmaster.wire import jsonform, packform
from jqmaster.wire.errors import HttpError, from_engine
from jqmaster.wire.message import Reply, Request
from jqmaster.wire.operations import OPERATIONS

_TRENDS, _CHANGES = Translation(OPERATIONS["trends"]), Translation(OPERATIONS["changes"])


def _overview(master: Master) -> Overview:
    if master.overview is None or master.draining.is_set():
        raise draining()
    return master.overview


def _trends(master: Master) -> Trends:
    if master.trends is None or master.draining.is_set():
        raise draining()
    return master.trends


async def get_overview(master: Master, _request: Request) -> Reply:
    """`GET /overview`: counts, rates, workers and alerts, two seconds old at most."""
    return Reply(200, await _overview(master).document())


async def overview_events(master: Master, _request: Request) -> Reply:
    """`GET /overview/events`: the same, every two seconds."""
    return Reply(200, content_type=EVENT_STREAM, stream=_follow(master, _overview(master)))


async def get_partitions(master: Master, _request: Request) -> Reply:
    """`GET /partitions`: how each partition of a system is, some seconds old at most."""
    if master.partitions is None:
        raise NotFound("this master serves one namespace, which has no partitions")
    if master.draining.is_set():
        raise draining()
    return Reply(200, packform.pack(await master.partitions.document()))


async def get_trends(master: Master, request: Request) -> Reply:
    """`GET /trends`: the largest queues or names, or outcomes, over time."""
    asked = _asked(_TRENDS, request)
    answer = _trends(master).trends(asked["split"], asked["from_ms"], asked.get("to_ms"), asked["top"])
    return Reply(200, await answer)


async def get_changes(master: Master, request: Request) -> Reply:
    """`GET /changes`: what is different since a moment."""
    asked = _asked(_CHANGES, request)
    return Reply(200, await _trends(master).changes(asked["since_ms"], asked["span"], asked["top"]))


def _asked(operation: Translation, request: Request) -> dict[str, Any]:
    defaults = {field.name: field.default for field in operation.operation.fields if field.default is not None}
    given: dict[str, Any] = packform.Reader(operation.read(request)[0]).map("")
    for field in operation.operation.fields:
        value, (least, most) = given.get(field.name), field.type[1:3]
        if field.required and value is None:
            raise HttpError(400, "INVALID", f"{field.name} is missing", field.name)
        if field.type.kind == "integer" and value is not None and not least <= value <= most:
            message = f"{field.name}: expected an integer from {least} to {most}, got {value}"
            raise HttpError(400, "INVALID", message, field.name)
    return defaults | given


@lru_cache(maxsize=2)
def _event(packed: bytes) -> bytes:
    """Made once for all who listen."""
    return b"data: %s\n\n" % jsonform.to_json(packed)


async def _follow(master: Master, overview: Overview) -> AsyncGenerator[bytes, None]:
    # At once, so that the client knows that it is connected.
    yield b":\n\n"
    async with aclosing(overview.follow(ALIVE_EVERY_S)) as coming:
        async for packed in coming:
            if master.draining.is_set():
                return
            if packed is None:
                yield b":\n\n"
            elif isinstance(packed, JQError):
                told = packform.pack(from_engine(packed, None).body())
                yield b"event: unavailable\ndata: %s\n\n" % jsonform.to_json(told)
            else:
                yield _event(packed)
