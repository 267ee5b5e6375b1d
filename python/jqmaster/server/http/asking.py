"""How a request runs an operation, whichever way it came: for who may ask for the queues that it names, together with
others where that is cheaper, and with what follows from it here."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgpack

from jqmaster.engine import durable as durables
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Operation
from jqmaster.server import logs
from jqmaster.server.http import within
from jqmaster.server.http.within import unpacked
from jqmaster.server.http_error import HttpError, draining
from jqmaster.server.master import Master
from jqmaster.server.message import Identity, Request
from jqmaster.server.reader import pack_spec

NOTHING: list[Any] = [-1]
"""A pick's reply that holds no job."""
_FOLLOWED = frozenset(("worker", "bulk", "grant", "revoke"))
_REGISTERED = re.compile(r"w[0-9a-f]{14}(?:[0-9a-f]{2})?")


async def ask(
    master: Master, request: Request, operation: Operation, arguments: list[bytes], given: Mapping[str, Any],
    wait_s: float = 0,
) -> Any:  # fmt: skip
    """Run an operation with the script's own arguments; `given`: its spec, unpacked. `wait_s`: how long a pick may wait
    for a job. Raises JQError, 403, and 503 for what a server that stops does not begin."""
    if request.who.queues is not None:
        await let_in(master, request.who, operation, arguments)
    match operation.name:
        case "enqueue":
            reply = await _enqueue(master, arguments)
        case "pick":
            reply = await _pick(master, arguments, given, wait_s)
        case "finish":
            reply = await _finish(master, arguments, given)
        case _:
            reply = await master.engine.raw(operation.name, *arguments)
    request.told = lambda: _told(operation, arguments, reply)
    if operation.room == "any" or (operation.room == "worker" and _REGISTERED.fullmatch(given["worker"])):
        master.dispatch.poke()
    if operation.name in _FOLLOWED:
        await _follow(master, operation.name, given)
    return reply


async def let_in(master: Master, who: Identity, operation: Operation, arguments: Sequence[bytes]) -> None:
    """Raise 403 unless they may ask for the queues that a call names."""
    if who.queues is not None:
        await within.check(master.engine, who, operation, arguments)


def refuse_lacking(request: Request, operation: Operation, spec: Mapping[str, Any]) -> None:
    """Raise 403 for an argument that needs another role."""
    for name in operation.restricted.keys() & spec.keys():
        if needed := operation.lacking(request.who.roles, (name,)):
            why = f"{operation.name} with {name} needs a key with the role {' or '.join(needed)}"
            raise HttpError(403, "FORBIDDEN", why, name)


def said_by_the_server(request: Request, operation: Operation, spec: Mapping[str, Any]) -> dict[str, str]:
    """What no client says itself: who does it, and with which key a worker is registered."""
    said = {"actor": request.who.name} if any(one.type == "actor" for one in operation.arguments) else {}
    if operation.name == "register" and request.who.key_id and spec.get("announce") is not True:
        said["key"] = request.who.key_id
    return said


def refuse_draining(master: Master) -> None:
    """Raise 503 where the server is stopping."""
    if master.draining.is_set():
        raise draining()


async def until_draining(master: Master, work: asyncio.Future[Any]) -> Any:
    """`work`'s result, or None if the server begins to stop first. `work` never outlives this call."""
    stopping = asyncio.ensure_future(master.draining.wait())
    try:
        await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            # Cancelled work may still come back with something, such as jobs just picked.
            await asyncio.wait((work,))
        return None if work.cancelled() else work.result()
    finally:
        stopping.cancel()
        work.cancel()


async def _enqueue(master: Master, arguments: list[bytes]) -> Any:
    """A single job shares a call with those of others, where nothing speaks against it: numbers in `depends` are places
    in a call."""
    durable, first = None, len(arguments) % 2  # options may come first
    if any(b"durable" in spec for spec in arguments[first::2]):
        specs = [unpacked(spec) for spec in arguments[first::2]]
        durable = durables.taken([spec for spec in specs if isinstance(spec, dict)])
        arguments[first::2] = [pack_spec(spec) for spec in specs]
    if len(arguments) != 2 or durable is not None or b"depends" in arguments[0]:
        return await master.engine.enqueue_packed(arguments, durable)
    return await master.enqueuing.enqueue(*arguments)


async def _pick(master: Master, arguments: list[bytes], spec: Mapping[str, Any], wait_s: float) -> Any:
    refuse_draining(master)
    if len(arguments) != 1 or not spec or (not wait_s and "request" in spec):
        return await master.engine.raw("pick", *arguments)
    if not wait_s:
        return await master.waiting.pick(spec, 0)
    return await until_draining(master, asyncio.ensure_future(master.waiting.pick(spec, wait_s))) or NOTHING


async def _finish(master: Master, arguments: list[bytes], spec: Mapping[str, Any]) -> Any:
    """A stopping server still takes outcomes; it only starts nothing new."""
    pick = spec.get("pick")
    if isinstance(pick, dict) and "wait" in pick:
        raise HttpError(403, "FORBIDDEN", "finish with pick.wait needs a key with the role server", "pick.wait")
    if pick is None or not master.draining.is_set():
        return await master.engine.raw("finish", *arguments)
    if len(arguments) == 1:
        raise draining()
    return [*await master.engine.raw("finish", pack_spec({"worker": spec["worker"]}), *arguments[1:]), *NOTHING]


async def _follow(master: Master, operation: str, given: Mapping[str, Any]) -> None:
    """What this server does behind some operations."""
    match operation:
        case "worker":
            # Of one that was quiet long polls got nothing, and nobody knows that they wait.
            master.waiting.look_again(given["worker"])
        case "bulk" if master.bulks is not None:
            master.bulks.poke()
        case "grant" | "revoke" if master.keyring is not None:
            with contextlib.suppress(JQError):  # it is looked again, and what was asked for is done
                await master.keyring.look()


def _told(operation: Operation, arguments: Sequence[bytes], reply: Any) -> dict[str, Any]:
    """For a line of the log: which jobs it was about, and which worker."""
    given = within.read(operation, arguments)
    told = {"worker": given.get("worker")}
    match operation.name:
        case "enqueue":
            return logs.ids(reply[::2])
        case "pick":
            return told | logs.ids(_picked(reply))
        case "finish":
            outcomes = list(_outcomes(given["outcomes"]))
            states = [one[0] if isinstance(one, list) else one for one in reply[: len(outcomes)]]
            became = [state.decode() for state in states[: logs.MOST_IDS]]
            held = (_attempt(one["id"], one["token"]) for one in outcomes)
            return told | logs.ids(held) | {"became": became, "picked": _picked(reply[len(outcomes) :])}
        case "heartbeat" | "release":
            return told | logs.ids(_attempt(*lease[:2]) for lease in given["jobs"])
        case "register":
            return {"worker": reply.decode()}
    return told


def _outcomes(parts: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Without the jobs that follow each."""
    specs = map(unpacked, parts[::2])
    for outcome in specs:
        yield outcome
        for _ in range(outcome.get("enqueue", 0)):
            next(specs)


def _attempt(job_id: str, token: str) -> str:
    """A job and its attempt's number: what may end it is not for all who read logs."""
    return f"{job_id}/{token.partition('-')[0]}"


def _picked(reply: Sequence[Any]) -> list[str]:
    documents = (msgpack.unpackb(document) for document in reply[1::2])
    return [f"{document['id']}/{document['attempt']}" for document in documents]
