"""Handlers for operators: queues, settings, health, and the API's own description."""

from __future__ import annotations

import asyncio
import time
from functools import cache
from importlib import resources
from pathlib import Path

from jqmaster.engine import packform
from jqmaster.errors import Unavailable
from jqmaster.server.http.asking import ask
from jqmaster.server.http.jobs import refuse_draining
from jqmaster.server.http.own import own
from jqmaster.server.http.translate import translation
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, flag
from jqmaster.server.reader import Reader, pack_spec

READY_S = 1.0
_PURGE = translation("discard", "DELETE /queue/{where.queue}/jobs")
_WAITING = ["queued", "scheduled", "blocked", "retrying"]


async def purge_queue(master: Master, request: Request) -> Reply:
    """`DELETE /queue/{name}/jobs`: discards its jobs, by default all that wait, for up to `timeout` s."""
    [first], given = _PURGE.read(request)
    where = {"status": _WAITING, **given["where"]}
    first = packform.extend_map(first, {"where": packform.pack(where), "count": packform.pack(100)})
    deadline = time.monotonic() + _PURGE.wait_s(request.arguments)
    spec, discarded = first, 0
    while True:
        cursor, changed = await ask(master, request.who, "discard", spec)
        discarded += changed
        if not cursor or time.monotonic() >= deadline or master.draining.is_set():
            return Reply(200, packform.pack({"discarded": discarded, "more": bool(cursor)}))
        spec = packform.extend_map(first, {"cursor": packform.pack(cursor.decode())})


async def get_config(master: Master, request: Request) -> Reply:
    """`GET /config`: all settings of the namespace; with `?describe`, what there is to set."""
    described = flag(request.arguments.get("describe", "0"), "describe")
    told = await ask(master, request.who, "config", packform.pack({"describe": True} if described else {}))
    return Reply(200, packform.raw_map({"settings": told}) if described else told)


async def set_config(master: Master, request: Request) -> Reply:
    """`PATCH /config`: change the settings named in the body, all or none; nil: its default again."""
    body = Reader(request.body).map("")
    unset = [name for name, value in body.items() if value is None]
    places = {f"unset[{index}]": name for index, name in enumerate(unset)}
    request.rename = lambda path: places.get(path, path.removeprefix("set").removeprefix("."))
    given = {"set": {name: value for name, value in body.items() if value is not None}, "unset": unset}
    spec = pack_spec({**given, "actor": request.who.name})
    return Reply(200, await ask(master, request.who, "config", spec))


@own(
    "alive",
    """Whether this server runs; asks nobody.
@reply {status: text}
@errors INTERNAL
@role anybody
@http GET /alive""",
)
async def alive(_master: Master, _request: Request) -> Reply:
    """`GET /alive`: 200 as long as this process answers at all; asks nobody."""
    return Reply(200, packform.pack({"status": "ok"}))


@own(
    "health",
    """Whether this server can serve.
@reply {status: text, form: text}
@errors UNAVAILABLE
@role anybody
@http GET /health""",
)
async def health(master: Master, _request: Request) -> Reply:
    """`GET /health`: 200 while this master can serve, with the form in which it calls operations; 503 when it
    is stopping, or Redis cannot be used or does not answer within `READY_S`.

    It asks Redis for the settings, so it also finds a namespace that is missing or of another schema.
    """
    refuse_draining(master)
    try:
        async with asyncio.timeout(READY_S):
            await master.engine.config()
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


@own(
    "openapi",
    """This document.
@reply text
@errors INTERNAL
@role anybody
@http GET /openapi.yaml -> yaml""",
)
async def openapi(_master: Master, _request: Request) -> Reply:
    """`GET /openapi.yaml`: this API."""
    return Reply(200, document("master.yaml"), "application/yaml")


@own(
    "worker_openapi",
    """The API that a worker offers, to which jobs are pushed.
@reply text
@errors INTERNAL
@role anybody
@http GET /worker/openapi.yaml -> yaml""",
)
async def worker_openapi(_master: Master, _request: Request) -> Reply:
    """`GET /worker/openapi.yaml`: the one that a worker offers to servers."""
    return Reply(200, document("worker.yaml"), "application/yaml")
