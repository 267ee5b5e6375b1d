"""Whether this server is well, and the API's own description."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import resources
from pathlib import Path

from jqmaster.engine import packform
from jqmaster.errors import Unavailable
from jqmaster.server.http.calls import refuse_draining
from jqmaster.server.http.own import own
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

READY_S = 1.0


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
@reply yaml
@errors INTERNAL
@role anybody
@http GET /openapi.yaml""",
)
async def openapi(_master: Master, _request: Request) -> Reply:
    """`GET /openapi.yaml`: this API."""
    return Reply(200, document("master.yaml"), "application/yaml")


@own(
    "worker_openapi",
    """The API that a worker offers, to which jobs are pushed.
@reply yaml
@errors INTERNAL
@role anybody
@http GET /worker/openapi.yaml""",
)
async def worker_openapi(_master: Master, _request: Request) -> Reply:
    """`GET /worker/openapi.yaml`: the one that a worker offers to servers."""
    return Reply(200, document("worker.yaml"), "application/yaml")
