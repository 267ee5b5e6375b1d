"""Handlers for operators: queues, settings, health, and the API's own description."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jqmaster.http import wire
from jqmaster.http.errors import HttpError
from jqmaster.http.jobs import draining
from jqmaster.http.message import Reply, Request, refuse_unknown
from jqmaster.http.work import page, page_reply
from jqmaster.master import Master

_QUEUE_FIELDS = ("paused", "max_waiting", "fair")


async def list_queues(master: Master, request: Request) -> Reply:
    """`GET /queues`: a page of queues in order of name."""
    return page_reply("queues", await master.engine.call("queues", wire.pack(page(request))))


async def get_queue(master: Master, request: Request) -> Reply:
    """`GET /queue/{name}`: its settings and counts."""
    name = request.params["name"]
    request.rename = _rename
    _cursor, *documents = await master.engine.call("queues", wire.pack({"names": [name]}))
    if not documents:
        raise HttpError(404, "NOTFOUND", f"no such queue: {wire.printable(name)}")
    return Reply(200, documents[0])


def _rename(path: str) -> str:
    return "name" if path.startswith("names") else path


async def set_queue(master: Master, request: Request) -> Reply:
    """`POST` or `PATCH /queue/{name}`: change `paused`, `max_waiting`, `fair`; a new name makes a queue."""
    body = wire.Reader(request.body).map("")
    refuse_unknown(body, _QUEUE_FIELDS)
    return await _change(master, request, body)


async def pause_queue(master: Master, request: Request) -> Reply:
    """`POST /queue/{name}/pause`: it goes on taking jobs and starts none."""
    return await _change(master, request, {"paused": True})


async def resume_queue(master: Master, request: Request) -> Reply:
    """`POST /queue/{name}/resume`."""
    return await _change(master, request, {"paused": False})


async def _change(master: Master, request: Request, changes: dict[str, Any]) -> Reply:
    spec = {"name": request.params["name"], **changes}
    document = await master.engine.call("queue", wire.pack_spec(spec))
    return Reply(200, document)


async def get_config(master: Master, _request: Request) -> Reply:
    """`GET /config`: all settings of the namespace."""
    return Reply(200, await master.engine.call("config", wire.pack({})))


async def set_config(master: Master, request: Request) -> Reply:
    """`PATCH /config`: change the settings named in the body, all or none."""
    request.rename = lambda path: path.removeprefix("set").removeprefix(".")
    body = wire.Reader(request.body).map("")
    return Reply(200, await master.engine.call("config", wire.pack_spec({"set": body})))


async def health(master: Master, _request: Request) -> Reply:
    """`GET /health`: 200 while this master can serve; 503 when it is stopping or Redis cannot be used.

    It asks Redis for the settings, so it also finds a namespace that is missing or of another schema.
    """
    if master.draining.is_set():
        raise draining()
    await master.engine.call("config", wire.pack({}))
    return Reply(200, wire.pack({"status": "ok"}))


@cache
def document(name: str) -> bytes:
    """An OpenAPI document (`master.yaml`, `worker.yaml`), from the installed package or the source tree."""
    packaged = resources.files("jqmaster").joinpath("openapi", name)
    if packaged.is_file():
        return packaged.read_bytes()
    return (Path(__file__).resolve().parents[3] / "openapi" / name).read_bytes()


async def master_openapi(_master: Master, _request: Request) -> Reply:
    """`GET /openapi.yaml`: this API."""
    return Reply(200, document("master.yaml"), "application/yaml")


async def worker_openapi(_master: Master, _request: Request) -> Reply:
    """`GET /worker/openapi.yaml`: the API that a worker offers to masters."""
    return Reply(200, document("worker.yaml"), "application/yaml")
