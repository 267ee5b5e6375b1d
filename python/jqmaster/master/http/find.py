"""Handlers that find jobs by what they are, and sum up what is there."""

from __future__ import annotations

import re
from typing import Any

from jqmaster.master.http.work import page, page_reply, paging
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.errors import invalid
from jqmaster.wire.message import Reply, Request, flag

_WHERE = ("queue", "status", "name", "tag", "group", "from_ms", "to_ms", "message")
_HOW = ("newest", "brief", "cursor", "count")
_STATS = ("by", "queue", "name", "from_ms", "to_ms")


async def list_jobs(master: Master, request: Request) -> Reply:
    """`GET /jobs`: a page of the jobs that match the query."""
    arguments = request.arguments((*_WHERE, *_HOW))
    request.rename = _without_where
    return await _search(master, arguments, _where(arguments))


async def list_queue_jobs(master: Master, request: Request) -> Reply:
    """`GET /queue/{name}/jobs`: a page of its jobs, by default those that are queued, in order."""
    arguments = request.arguments(("status", *_HOW))
    request.rename = _of_queue
    where = {"status": "queued", **_where(arguments), "queue": request.params["name"]}
    return await _search(master, arguments, where)


def _without_where(path: str) -> str:
    return re.sub(r"^where\.|\[\d+\]$", "", path)


def _of_queue(path: str) -> str:
    known = _without_where(path)
    return "name" if known == "queue" else known


async def _search(master: Master, arguments: dict[str, str], where: dict[str, Any]) -> Reply:
    spec: dict[str, Any] = {"where": where, **paging(arguments)}
    for name in ("newest", "brief"):
        if name in arguments:
            spec[name] = flag(arguments[name], name)
    return page_reply("jobs", await master.engine.call("jobs", packform.pack_spec(spec)))


def _where(arguments: dict[str, str]) -> dict[str, Any]:
    where: dict[str, Any] = {name: arguments[name] for name in _WHERE if name in arguments}
    for name in ("from_ms", "to_ms"):
        if name in where:
            where[name] = milliseconds(where[name], name)
    if "," in where.get("status", ""):
        where["status"] = where["status"].split(",")
    return where


def milliseconds(text: str, name: str) -> int:
    """A moment from a query."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise invalid(name, f"expected milliseconds since 1970, got {packform.printable(text, 40)!r}")
    return int(text)


async def list_failures(master: Master, request: Request) -> Reply:
    """`GET /failures`: the groups of jobs that failed for good."""
    return page_reply("failures", await master.engine.call("failures", packform.pack(page(request))))


async def list_tags(master: Master, request: Request) -> Reply:
    """`GET /tags`: a page of the tags in order, or the `top` most used."""
    arguments = request.arguments(("top", "cursor", "count"))
    spec = paging(arguments)
    if "top" in arguments:
        spec["top"] = paging({"count": arguments["top"]}, "top")["count"]
    cursor, *pairs = await master.engine.call("tags", packform.pack(spec))
    tags = [
        packform.raw_map({"tag": packform.pack(tag.decode()), "count": packform.pack(count)}) for tag, count in pairs
    ]
    return page_reply("tags", [cursor, *tags])


async def get_stats(master: Master, request: Request) -> Reply:
    """`GET /stats`: what happened, by minute, hour or day."""
    spec = _period(request.arguments(_STATS))
    documents = await master.engine.call("stats", packform.pack_spec(spec))
    return Reply(200, packform.raw_map({"stats": packform.raw_array(documents)}))


async def get_series(master: Master, request: Request) -> Reply:
    """`GET /stats/series`: a page of sums over all of a time, for each pair of queue and name."""
    arguments = request.arguments((*_STATS, "cursor", "count"))
    spec = {**_period(arguments), **paging(arguments), "series": True}
    return page_reply("series", await master.engine.call("stats", packform.pack_spec(spec)))


def _period(arguments: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"by": "hour", **arguments}
    for name in ("from_ms", "to_ms"):
        if name in spec:
            spec[name] = milliseconds(spec[name], name)
    return spec
