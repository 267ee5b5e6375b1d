"""How a request runs an operation, whichever way it came: for who may ask for the queues that it names, together with
others where that is cheaper, and with what follows from it here. And `POST /call/<operation>`, which does only that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.waiting import NOTHING
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server.http import within
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import map_of, map_with, members

MOST_WAIT_S = 300
# The first read begins a result's time; of a job that is waited for more is published.
_WRITING = ("result", "poll_job")
_NOTED = frozenset(
    name for name, operation in operations().items() if any(one.type == "actor" for one in operation.arguments)
)
"""Operations of which the trail says who called them."""


async def run(
    master: Master, request: Request, operation: Operation, arguments: list[bytes], wait_s: float = 0.0
) -> Any:
    """Run an operation with the script's own arguments. `wait_s`: how long a pick may wait for a job. Raises JQError,
    403, and 503 for what a server that stops does not begin."""
    name, who = operation.name, request.who
    spec, behind = taken_apart(operation, arguments)
    for restricted in operation.restricted.keys() & spec.keys():
        if needed := operation.lacking(who.roles, (restricted,)):
            why = f"{name} with {restricted} needs a key with the role {' or '.join(needed)}"
            raise HttpError("FORBIDDEN", why, restricted)
    if name == "finish" and isinstance(pick := spec.get("pick"), dict) and "wait" in pick:
        raise HttpError("FORBIDDEN", "finish with pick.wait needs a key with the role server", "pick.wait")
    await within.check(master.engine, who, operation, {**spec, **behind})
    # What no client says itself: who does it, and with which key a worker is registered.
    if name == "register" and who.key_id and spec and spec.get("announce") is not True:
        arguments[0] = map_with({**members(arguments[0]), "key": who.key_id})
    elif spec and name in _NOTED:
        arguments[0] = map_with({**members(arguments[0]), "actor": who.name})
    if name == "pick":
        reply = await _pick(master, request, arguments, spec, wait_s)
    elif name == "enqueue" and len(arguments) == 2 and b"depends" not in arguments[0]:
        # A single job shares a call with those of others; numbers in `depends` are places in a call.
        reply = await master.enqueuing.get(*arguments)
    else:
        reply = await master.engine.raw(name, *arguments)
    if name == "worker":
        # Of one that was quiet long polls got nothing, and nobody knows that they wait.
        master.waiting.look_again(spec["worker"])
    elif name in ("grant", "revoke"):
        with contextlib.suppress(JQError):  # it is looked again, and what was asked for is done
            await master.keyring.look()
    return within.leave_out(who, operation, reply)


def taken_apart(operation: Operation, arguments: Sequence[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call's spec, read, and what stands behind it, by name. Raises 400."""
    spec: dict[str, Any] = {}
    behind: dict[str, Any] = {}
    rest = list(arguments)
    for position in operation.positions:
        if position == "spec" or (position == "[spec]" and len(rest) % 2):
            spec = map_of(rest.pop(0)) if rest else {}
        elif position.endswith("..."):
            behind[position[:-3]], rest = rest, []
        elif rest and position != "[spec]":
            behind[position] = rest.pop(0)
    return spec, behind


def refuse_draining(master: Master) -> None:
    """Raise 503 where the server is stopping: another one, or this one restarted, will do."""
    if master.draining.is_set():
        raise HttpError("DRAINING", "this server is stopping; try again, it or another will answer")


async def _pick(
    master: Master, request: Request, arguments: list[bytes], spec: Mapping[str, Any], wait_s: float
) -> Any:
    """Nobody is given jobs who has gone away while they waited."""
    refuse_draining(master)
    if len(arguments) != 1 or not spec or (not wait_s and "request" in spec):
        return await master.engine.raw("pick", *arguments)
    if not wait_s:
        return await master.waiting.pick(spec, 0)
    picking, leaving = (asyncio.ensure_future(one) for one in (master.waiting.pick(spec, wait_s), request.left()))
    try:
        await asyncio.wait((picking, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not picking.done():
            picking.cancel()  # it may still come back with jobs just picked
            await asyncio.wait((picking,))
        return NOTHING if picking.cancelled() else picking.result()
    finally:
        picking.cancel()
        leaving.cancel()


class Route:
    """A request of the API. `query`: its parameters. `takes_body`: its content type is checked and JSON is turned into
    MessagePack; else a body is ignored. `reads`: a browser may send it for a page of another site."""

    def __init__(
        self, operation: Operation, method: str, path: str, query: Collection[str], *, takes_body: bool
    ) -> None:
        self.operation, self.method, self.path = operation, method, path
        self.query, self.takes_body = query, takes_body
        self.reads = method == "GET" and operation.name not in _WRITING

    async def answer(self, master: Master, request: Request) -> Reply:
        """Raises HttpError, and what the engine raises."""
        raise NotImplementedError


class Call(Route):
    """`POST /call/<operation>`: a list of the script's own arguments in, its own reply out. What the library uses, and
    all that a thin client needs."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation, "POST", f"/call/{operation.name}", ("timeout",), takes_body=True)

    async def answer(self, master: Master, request: Request) -> Reply:
        """As the script does."""
        wait_s = seconds(request.query.get("timeout", 0), "timeout", MOST_WAIT_S)
        return Reply(200, packform.pack(await run(master, request, self.operation, _arguments(request.body), wait_s)))


def _arguments(body: bytes) -> list[bytes]:
    with contextlib.suppress(ValueError, TypeError, msgpack.UnpackException):
        given = msgpack.unpackb(body, strict_map_key=False, raw=True)
        arguments = [str(one).encode() if type(one) is int else one for one in given]
        if type(given) is list and all(type(one) is bytes for one in arguments):
            return arguments
    raise invalid(None, "expected one list of the script's arguments: text, binary data or integers")
