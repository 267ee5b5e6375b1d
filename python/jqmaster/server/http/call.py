"""`POST /call/<operation>`: a list of the script's own arguments in, its own reply out. What the library uses, and all
that a thin client needs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgpack

from jqmaster.engine import durable as durables
from jqmaster.engine import packform
from jqmaster.manifest.contract import Operation
from jqmaster.server import logs
from jqmaster.server.http.asking import ask, let_in
from jqmaster.server.http.jobs import refuse_draining, until_draining
from jqmaster.server.http.within import unpacked
from jqmaster.server.http.work import NOTHING, poke
from jqmaster.server.http_error import HttpError, draining, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import check as check_body
from jqmaster.server.reader import pack_spec

MOST_WAIT_S = 300


class Call:
    """The handler of one operation."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._name = operation.name
        self._takes_actor = any(one.type == "actor" for one in operation.arguments)
        self._looks = bool(operation.restricted) or self._takes_actor

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        arguments = _arguments(request.body)
        if self._looks and arguments:
            arguments[0] = self._let_in(request, arguments[0])
        match self._name:
            case "enqueue":
                reply = await _enqueue(master, request, arguments)
            case "pick":
                reply = await self._pick(master, request, arguments)
            case "finish":
                reply = await _finish(master, request, arguments)
            case _:
                reply = await ask(master, request.who, self._name, *arguments)
        if self._name in ("finish", "heartbeat", "release", "register") and arguments:
            spec = unpacked(arguments[0])
            poke(master, spec.get("worker") if self._name != "register" else reply.decode())
        return Reply(200, packform.pack(reply))

    def _let_in(self, request: Request, packed: bytes) -> bytes:
        """The spec, with what the server says of who calls. Raises 403 for what needs another role."""
        spec = unpacked(packed)
        if not isinstance(spec, dict):
            return packed
        for name in self.operation.restricted.keys() & spec.keys():
            if needed := self.operation.lacking(request.who.roles, (name,)):
                message = f"{self._name} with {name} needs a key with the role {' or '.join(needed)}"
                raise HttpError(403, "FORBIDDEN", message, name)
        said = {"actor": packform.pack(request.who.name)} if self._takes_actor else {}
        if self._name == "register" and request.who.key_id and spec.get("announce") is not True:
            said["key"] = packform.pack(request.who.key_id)
        # Its own bytes stay as they are: the script says what is wrong with them.
        if "actor" in spec:
            return packform.raw_map(packform.members(packed) | said)
        return packform.extend_map(packed, said)

    async def _pick(self, master: Master, request: Request, arguments: list[bytes]) -> list[Any]:
        refuse_draining(master)
        timeout_s = seconds(request.arguments.get("timeout", 0), "timeout", MOST_WAIT_S)
        spec = unpacked(arguments[0]) if len(arguments) == 1 else None
        if not isinstance(spec, dict) or (not timeout_s and "request" in spec):
            reply: list[Any] = await ask(master, request.who, "pick", *arguments)
            return reply
        await let_in(master, request.who, "pick", *arguments)
        waiting = asyncio.ensure_future(master.waiting.pick(spec, timeout_s))
        return await until_draining(master, waiting) or list(NOTHING)


def _arguments(body: bytes) -> list[bytes]:
    check_body(body)
    try:
        given = msgpack.unpackb(body, strict_map_key=False, raw=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        given = None
    if not isinstance(given, list):
        raise invalid(None, "expected a list of the script's arguments")
    found = [str(one).encode() if type(one) is int else one for one in given]
    for index, one in enumerate(found):
        if not isinstance(one, bytes):
            raise invalid(f"[{index}]", "expected text or binary data, an argument of the script")
    return found


async def _enqueue(master: Master, request: Request, arguments: list[bytes]) -> Any:
    """A single job shares a call with those of others, where nothing speaks against it."""
    durable, names = None, b"".join(arguments[::2])
    if b"durable" in names:
        first = len(arguments) % 2
        specs = [unpacked(spec) for spec in arguments[first::2]]
        durable = durables.taken([spec for spec in specs if isinstance(spec, dict)])
        arguments[first::2] = [pack_spec(spec) for spec in specs]
    if len(arguments) != 2 or durable is not None or b"depends" in arguments[0]:
        reply = await ask(master, request.who, "enqueue", *arguments, durable=durable)
    else:
        await let_in(master, request.who, "enqueue", *arguments)
        reply = await master.enqueuing.enqueue(*arguments)
    request.told = lambda: logs.ids(reply[::2])
    return reply


async def _finish(master: Master, request: Request, arguments: Sequence[bytes]) -> Any:
    """A stopping server still takes outcomes; it only starts nothing new."""
    if not master.draining.is_set() or not arguments or b"pick" not in arguments[0]:
        return await ask(master, request.who, "finish", *arguments)
    spec, *outcomes = arguments
    wanted = unpacked(spec)
    if not outcomes:
        raise draining()
    wanted.pop("pick", None)
    return [*await ask(master, request.who, "finish", pack_spec(wanted), *outcomes), *NOTHING]
