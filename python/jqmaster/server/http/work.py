"""Handlers for workers: register, stay alive, get jobs, report what became of them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.replies import pairs
from jqmaster.server import logs
from jqmaster.server.http.asking import ask, let_in
from jqmaster.server.http.jobs import refuse_draining, until_draining
from jqmaster.server.http.translate import translation
from jqmaster.server.http_error import invalid
from jqmaster.server.master import Master
from jqmaster.server.message import ARGUMENT, Reply, Request, refuse_unknown
from jqmaster.server.reader import Reader, pack_spec

WORKER_ID = "worker-id"
_REGISTERED = re.compile(r"w[0-9a-f]{14}(?:[0-9a-f]{2})?")
_NOTES = ("progress", "message", "argument")
_PICK = translation("pick", "POST /pick")
_REGISTER = translation("register", "POST /worker")
NOTHING: list[Any] = [-1]
"""A pick's reply that holds no job."""


def _body(request: Request) -> dict[str, Any]:
    return Reader(request.body).map("")


def worker_of(request: Request, body: dict[str, Any]) -> str:
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


def poke(master: Master, worker: object) -> None:
    """A registered worker may have room now. Others are never pushed to."""
    if isinstance(worker, str) and _REGISTERED.fullmatch(worker):
        master.dispatch.poke()


async def register(master: Master, request: Request) -> Reply:
    """`POST /worker`: `{name, queues, url?, max_jobs?, secrets?, …}`."""
    body = _body(request)
    # The engine knows `key` too, which is set by the server only.
    refuse_unknown(body, _REGISTER.route.arguments)
    is_registered = body.get("announce") is not True
    if request.who.key_id and is_registered:
        body["key"] = request.who.key_id
    worker_id = (await ask(master, request.who, "register", pack_spec(body))).decode()
    request.told = lambda: {"worker": worker_id}
    if is_registered:
        master.dispatch.poke()
    return Reply(201, packform.pack({"worker_id": worker_id}))


async def unregister(master: Master, request: Request) -> Reply:
    """`DELETE /worker`: what the worker held goes back to its queues."""
    worker = worker_of(request, {})
    released = await ask(master, request.who, "unregister", packform.pack({"worker": worker}))
    return Reply(200, packform.pack({"released": released}))


def _leases(jobs: Any, more: tuple[str, ...] = ()) -> Any:
    """`jobs` as the engine takes it: `[[id, token], …]`; in HTTP each may also be a map."""
    if not isinstance(jobs, list):
        return jobs
    return [_lease(job, f"jobs[{index}]", more) for index, job in enumerate(jobs)]


def _lease(job: Any, path: str, more: tuple[str, ...] = ()) -> Any:
    if not isinstance(job, dict):
        return job
    refuse_unknown(map(str, job), ("id", "token", *more), f"{path}.")
    for name in ("id", "token"):
        if name not in job:
            raise invalid(f"{path}.{name}", "missing")
    notes = {name: job[name] for name in more if name in job}
    return [job["id"], job["token"], *([notes] if notes else [])]


def attempt_of(job_id: str, token: str) -> str:
    """A job and its attempt's number, for logs: what may end it is not for all who read them."""
    return f"{job_id}/{token.partition('-')[0]}"


def _held(jobs: list[Any]) -> list[str]:
    return [attempt_of(job[0], job[1]) for job in jobs]


def states(reply: list[Any]) -> list[Any]:
    """Answers of the engine about jobs, as text or numbers."""
    return [item.decode("ascii") if isinstance(item, bytes) else item for item in reply]


async def heartbeat(master: Master, request: Request) -> Reply:
    """`POST /worker/heartbeat`: per job the remaining milliseconds of its lease, LOST or CANCELLED; and what
    is asked of the worker."""
    blobs: list[bytes] = []
    body, jobs = _heartbeat_body(request, blobs)
    worker = worker_of(request, body)
    is_registered = isinstance(worker, str) and _REGISTERED.fullmatch(worker) is not None
    spec = {**body, "worker": worker, "jobs": jobs, **({"control": True} if is_registered else {})}
    # The engine knows `control` too, which is set by the server only.
    refuse_unknown(body, ("jobs", "worker"))
    reply = await ask(master, request.who, "heartbeat", pack_spec(spec), *blobs)
    answers, asked = (reply[0], reply[1].decode()) if is_registered else (reply, "")
    poke(master, worker)
    request.told = lambda: {"worker": worker, **logs.ids(_held(jobs))}
    return Reply(200, packform.pack({"jobs": states(answers), "request": asked}))


def _heartbeat_body(request: Request, blobs: list[bytes]) -> tuple[dict[str, Any], Any]:
    if not request.body:
        return {}, []
    reader = Reader(request.body)
    maps: set[int] = set()
    # What was said in a map is in the third place of the engine's list.
    request.rename = lambda path: re.sub(
        r"^jobs\[(\d+)\]\[2\]\.", lambda found: f"jobs[{found[1]}]." if int(found[1]) in maps else found[0], path
    )
    if b"argument" not in request.body:
        body = reader.map("")
        jobs = body.get("jobs", [])
        if isinstance(jobs, list):
            maps.update(index for index, job in enumerate(jobs) if isinstance(job, dict))
        return body, _leases(jobs, _NOTES)

    def read_jobs(path: str) -> list[Any]:
        return [_noted(reader, item, blobs, maps) for item in reader.items(path)]

    body = reader.map("", special={"jobs": read_jobs})
    return body, body.get("jobs", [])


def _noted(reader: Reader, path: str, blobs: list[bytes], maps: set[int]) -> Any:
    """One job of a heartbeat, a list or a map, with checkpoints cut out: notes name them by their index."""

    def noted(notes: dict[str, Any]) -> dict[str, Any]:
        if "argument" in notes:
            blobs.append(notes["argument"])
            notes["argument"] = len(blobs) - 1
        return notes

    kind = reader.kind()
    if kind == "map":
        maps.add(int(path[path.rindex("[") + 1 : -1]))
        return _lease(noted(reader.map(path, ARGUMENT)), path, _NOTES)
    if kind != "array":
        return reader.value(path)
    parts: list[Any] = []
    for number, place in enumerate(reader.items(path)):
        is_notes = number == 2 and reader.kind() == "map"
        parts.append(noted(reader.map(place, ARGUMENT)) if is_notes else reader.value(place))
    return parts


async def release(master: Master, request: Request) -> Reply:
    """`POST /release`: gives jobs back without spending a retry; `hold` closes keys of constraints,
    and `message` is for their history."""
    body = _body(request)
    worker = worker_of(request, body)
    spec = {**body, "worker": worker, "jobs": _leases(body.get("jobs"))}
    reply = await ask(master, request.who, "release", pack_spec(spec))
    poke(master, worker)
    request.told = lambda: {"worker": worker, **logs.ids(_held(spec["jobs"]))}
    return Reply(200, packform.pack({"jobs": states(reply)}))


def jobs_of(reply: list[Any]) -> dict[str, bytes]:
    """`pick`'s reply as the pairs of a response: each job's document with its argument, unread."""
    jobs = [packform.extend_map(document, {"argument": argument}) for document, argument in pairs(reply[1:])]
    return {"jobs": packform.raw_array(jobs), "next_ms": packform.pack(reply[0])}


def picked_ids(reply: list[Any]) -> list[str]:
    """Of `pick`'s reply, the ids of its jobs with their attempts."""
    documents = (msgpack.unpackb(document) for document in reply[1::2])
    return [f"{document['id']}/{document['attempt']}" for document in documents]


async def pick(master: Master, request: Request) -> Reply:
    """`POST /pick`: up to `count` jobs; with `timeout` the answer waits until there is one."""
    body = _body(request)
    worker = worker_of(request, body)
    timeout_s = _PICK.wait_s(body)
    body.pop("timeout", None)
    # The engine knows `wait` too, which is set by the server only: a client waits with `timeout`.
    refuse_unknown(body, _PICK.route.arguments)
    spec = {**body, "worker": worker}
    refuse_draining(master)
    await let_in(master, request.who, "pick", pack_spec(spec))
    if timeout_s == 0 and "request" in spec:
        reply = await master.engine.raw("pick", pack_spec(spec))
    elif timeout_s == 0:
        reply = await master.waiting.pick(spec, 0)
    else:
        reply = await until_draining(master, asyncio.ensure_future(master.waiting.pick(spec, timeout_s)))
    request.told = lambda: {"worker": worker, **logs.ids(picked_ids(reply or [-1]))}
    return Reply(200, packform.raw_map(jobs_of([-1] if reply is None else reply)))
