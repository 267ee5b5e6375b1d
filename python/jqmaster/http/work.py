"""Handlers for workers: register, stay alive, get jobs, report what became of them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from jqmaster.http import wire
from jqmaster.http.errors import STATUS, HttpError, invalid
from jqmaster.http.jobs import MAX_WAIT_S, draining, until_draining
from jqmaster.http.message import Reply, Request, refuse_unknown, seconds, unknown_field
from jqmaster.master import Master

WORKER_ID = "worker-id"
_REGISTERED = re.compile(r"w[0-9a-f]{14}")
_PICK_FIELDS = ("queues", "count", "order", "request")
_BLOBS = frozenset(("result", "error"))
_BLOB_OF = {"success": "result", "failure": "error"}


def _body(request: Request) -> dict[str, Any]:
    return wire.Reader(request.body).map("")


def _worker(request: Request, body: dict[str, Any]) -> str:
    """Who is asking: the header `worker-id`, or `worker` in the body."""
    header, in_body = request.header(WORKER_ID), body.pop("worker", None)
    if header is None and in_body is None:
        raise invalid(WORKER_ID, "missing; send the id that POST /worker gave, or to pull, any name")
    if header is not None and in_body is not None and header != in_body:
        raise invalid("worker", f"differs from the header {WORKER_ID}")
    if header is not None:
        shape = request.rename
        request.rename = lambda path: WORKER_ID if path == "worker" else shape(path)
    worker: str = in_body if header is None else header
    return worker


def _poke(master: Master, worker: object) -> None:
    """A registered worker may have room now. Others are never pushed to."""
    if isinstance(worker, str) and _REGISTERED.fullmatch(worker):
        master.dispatch.poke()


async def register(master: Master, request: Request) -> Reply:
    """`POST /worker`: `{name, queues, url?, max_jobs?}`."""
    worker_id = await master.engine.call("register", wire.pack_spec(_body(request)))
    master.dispatch.poke()
    return Reply(201, wire.pack({"worker_id": worker_id.decode("ascii")}))


async def unregister(master: Master, request: Request) -> Reply:
    """`DELETE /worker`: what the worker held goes back to its queues."""
    worker = _worker(request, {})
    released = await master.engine.call("unregister", wire.pack({"worker": worker}))
    master.dispatch.poke()
    return Reply(200, wire.pack({"released": released}))


def _leases(jobs: Any) -> Any:
    """`jobs` as the engine takes it: `[[id, attempt], …]`; in HTTP each may also be a map."""
    if not isinstance(jobs, list):
        return jobs
    return [_lease(job, f"jobs[{index}]") for index, job in enumerate(jobs)]


def _lease(job: Any, path: str) -> Any:
    if not isinstance(job, dict):
        return job
    refuse_unknown(map(str, job), ("id", "attempt"), f"{path}.")
    for name in ("id", "attempt"):
        if name not in job:
            raise invalid(f"{path}.{name}", "missing")
    return [job["id"], job["attempt"]]


def _states(reply: list[Any]) -> list[Any]:
    return [item.decode("ascii") if isinstance(item, bytes) else item for item in reply]


async def heartbeat(master: Master, request: Request) -> Reply:
    """`POST /worker/heartbeat`: per job the remaining milliseconds of its lease, LOST or CANCELLED."""
    body = wire.Reader(request.body).map("") if request.body else {}
    worker = _worker(request, body)
    spec = {**body, "worker": worker, "jobs": _leases(body.get("jobs", []))}
    reply = await master.engine.call("heartbeat", wire.pack_spec(spec))
    _poke(master, worker)
    return Reply(200, wire.pack({"jobs": _states(reply)}))


async def release(master: Master, request: Request) -> Reply:
    """`POST /release`: gives jobs back without spending a retry; `hold` closes keys of constraints."""
    body = _body(request)
    worker = _worker(request, body)
    spec = {**body, "worker": worker, "jobs": _leases(body.get("jobs"))}
    reply = await master.engine.call("release", wire.pack_spec(spec))
    _poke(master, worker)
    return Reply(200, wire.pack({"jobs": _states(reply)}))


def _jobs(reply: list[Any]) -> dict[str, bytes]:
    """`pick`'s reply as the pairs of a response: each job's document with its argument, unread."""
    jobs = [wire.extend_map(document, {"argument": argument}) for document, argument in reply[1:]]
    return {"jobs": wire.raw_array(jobs), "next_ms": wire.pack(reply[0])}


async def pick(master: Master, request: Request) -> Reply:
    """`POST /pick`: up to `count` jobs; with `timeout` the answer waits until there is one."""
    body = _body(request)
    worker = _worker(request, body)
    timeout_s = seconds(body.pop("timeout", 0), "timeout", MAX_WAIT_S)
    # The engine knows `wait` too, which is the master's own business: a client waits with `timeout`.
    refuse_unknown(body, (*_PICK_FIELDS, "timeout", "worker"))
    spec = {**body, "worker": worker}
    if master.draining.is_set():
        raise draining()
    packed = wire.pack_spec(spec)
    if timeout_s == 0:
        reply = await master.engine.call("pick", packed)
    else:
        reply = await until_draining(master, asyncio.ensure_future(master.waiting.pick(spec, timeout_s)))
    return Reply(200, wire.raw_map(_jobs([-1] if reply is None else reply)))


async def done(master: Master, request: Request) -> Reply:
    """`POST /done`: one outcome as the body, or `{outcomes: [...], pick?}`."""
    reader = wire.Reader(request.body)
    many: list[tuple[bytes, bytes]] | None = None
    kinds: list[str] = []

    def read_outcomes(path: str) -> list[tuple[bytes, bytes]]:
        return [_outcome(reader.map(item, _BLOBS), f"{item}.", kinds) for item in reader.items(path)]

    body = reader.map("", _BLOBS, {"outcomes": read_outcomes})
    many = body.pop("outcomes", None)
    prefix = "" if many is None else "outcomes"

    def rename(path: str) -> str:
        match = re.fullmatch(r"outcomes\[(\d+)\](?:\.(.*))?", path)
        if match is None:
            return path
        index, name = int(match[1]), match[2]
        if name == "blob":
            name = kinds[index]
        if many is None:
            return name or ""
        return f"{prefix}[{index}]" + (f".{name}" if name else "")

    request.rename = rename
    worker = _worker(request, body)
    if many is None:
        outcome, blob = _outcome(body, "", kinds)
        [[state]] = await master.engine.call("finish", wire.pack_spec({"worker": worker}), outcome, blob)
        _poke(master, worker)
        return _single_answer(state.decode("ascii"))
    return await _done_many(master, worker, body, many)


def _outcome(body: dict[str, Any], prefix: str, kinds: list[str]) -> tuple[bytes, bytes]:
    """An outcome's spec and blob. The blob is called `result` or `error` by the outcome's type."""
    kind = str(body.get("type"))
    blob_name = _BLOB_OF.get(kind, "result")
    other = "error" if blob_name == "result" else "result"
    if "blob" in body:
        # The engine's word for either; in its error paths it would be taken for the result.
        raise unknown_field(f"{prefix}blob", ())
    if kind in _BLOB_OF and other in body:
        raise invalid(f"{prefix}{other}", f"an outcome of type {kind} has {blob_name}, not {other}")
    kinds.append(blob_name)
    body.pop(other, None)
    blob = body.pop(blob_name, wire.NIL)
    return wire.pack_spec(body), blob


async def _done_many(
    master: Master, worker: str, body: dict[str, Any], outcomes: list[tuple[bytes, bytes]]
) -> Reply:
    refuse_unknown(body, ("outcomes", "pick", "worker"))
    spec: dict[str, Any] = {"worker": worker}
    wanted = body.get("pick")
    # A stopping master still takes outcomes; it only starts nothing new.
    picking = wanted is not None and not master.draining.is_set()
    if isinstance(wanted, dict):
        refuse_unknown(map(str, wanted), _PICK_FIELDS, "pick.")
    elif wanted is not None:
        raise invalid("pick", f"expected a map, got {type(wanted).__name__}")
    if picking:
        spec["pick"] = wanted
    elif wanted is not None and not outcomes:
        raise draining()
    args = [part for outcome in outcomes for part in outcome]
    reply = await master.engine.call("finish", wire.pack_spec(spec), *args)
    _poke(master, worker)
    pairs = {"states": wire.pack(_states(reply[0]))}
    if wanted is not None:
        pairs |= _jobs(reply[1] if picking else [-1])
    return Reply(200, wire.raw_map(pairs))


def _single_answer(state: str) -> Reply:
    if not state.isupper():
        return Reply(204)
    messages = {
        "LOST": "this attempt no longer holds the job: its lease ran out or it was given back",
        "CANCELLED": "the job was cancelled while it ran; its outcome is not kept",
        "NOTFOUND": "no such job",
        "CONFLICT": "the attempt was already finished with another outcome",
    }
    raise HttpError(STATUS.get(state, 409), state, messages.get(state, state), "id")


async def list_workers(master: Master, request: Request) -> Reply:
    """`GET /workers`: the registered workers, a page at a time."""
    return page_reply("workers", await master.engine.call("workers", wire.pack(page(request))))


def page(request: Request) -> dict[str, Any]:
    """The spec of a page from the query's `cursor` and `count`."""
    arguments = request.arguments(("cursor", "count"))
    spec: dict[str, Any] = {}
    if arguments.get("cursor"):
        spec["cursor"] = arguments["cursor"]
    if "count" in arguments:
        count = arguments["count"]
        if not re.fullmatch(r"[0-9]{1,6}", count):
            raise invalid("count", f"expected an integer from 1 to 1000, got {wire.printable(count, 40)!r}")
        spec["count"] = int(count)
    return spec


def page_reply(name: str, reply: list[Any]) -> Reply:
    """A page: the documents under `name`, and the `cursor` that continues (empty at the end)."""
    cursor, *documents = reply
    return Reply(200, wire.raw_map({name: wire.raw_array(documents), "cursor": wire.pack(cursor.decode())}))
