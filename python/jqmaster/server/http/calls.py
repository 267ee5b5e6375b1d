"""How a request runs an operation, whichever way it came: for who may ask for the queues that it names, together with
others where that is cheaper, and with what follows from it here. `POST /call/<operation>`, which does only that. And
how requests are declared that are more than one call of a script, or none."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.waiting import NOTHING
from jqmaster.errors import JQError
from jqmaster.manifest import heads
from jqmaster.manifest.contract import Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server.http import within
from jqmaster.server.http_error import HttpError, draining, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import check, map_of, map_with, members

Handler = Callable[[Master, Request], Awaitable[Reply]]
MOST_WAIT_S = 300
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
    await within.check(master.engine, who, operation, {**spec, **behind})
    # What no client says itself: who does it, and with which key a worker is registered.
    if name == "register" and who.key_id and spec and spec.get("announce") is not True:
        arguments[0] = map_with({**members(arguments[0]), "key": who.key_id})
    elif spec and name in _NOTED:
        arguments[0] = map_with({**members(arguments[0]), "actor": who.name})
    match name:
        case "pick":
            reply = await _pick(master, request, arguments, spec, wait_s)
        case "finish":
            reply = await _finish(master, arguments, spec)
        case _:
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
    """Raise 503 where the server is stopping."""
    if master.draining.is_set():
        raise draining()


async def unless(work: Awaitable[Any], *events: Awaitable[Any]) -> Any:
    """`work`'s result, or None if one of the events comes first. `work` never outlives this call."""
    working, *waiting = map(asyncio.ensure_future, (work, *events))
    try:
        await asyncio.wait((working, *waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            # Cancelled work may still come back with something, such as jobs just picked.
            await asyncio.wait((working,))
        return None if working.cancelled() else working.result()
    finally:
        for task in (working, *waiting):
            task.cancel()


async def _pick(
    master: Master, request: Request, arguments: list[bytes], spec: Mapping[str, Any], wait_s: float
) -> Any:
    """Nobody is given jobs who has gone away while they waited."""
    refuse_draining(master)
    if len(arguments) != 1 or not spec or (not wait_s and "request" in spec):
        return await master.engine.raw("pick", *arguments)
    if not wait_s:
        return await master.waiting.pick(spec, 0)
    return await unless(master.waiting.pick(spec, wait_s), master.draining.wait(), request.left()) or NOTHING


async def _finish(master: Master, arguments: list[bytes], spec: Mapping[str, Any]) -> Any:
    """A stopping server still takes outcomes; it only starts nothing new."""
    pick = spec.get("pick")
    if isinstance(pick, dict) and "wait" in pick:
        raise HttpError("FORBIDDEN", "finish with pick.wait needs a key with the role server", "pick.wait")
    if pick is None or not master.draining.is_set():
        return await master.engine.raw("finish", *arguments)
    if len(arguments) == 1:
        raise draining()
    without = packform.pack({name: value for name, value in spec.items() if name != "pick"})
    return [*await master.engine.raw("finish", without, *arguments[1:]), *NOTHING]


class Call:
    """`POST /call/<operation>`: a list of the script's own arguments in, its own reply out. What the library uses, and
    all that a thin client needs."""

    query = ("timeout",)

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        wait_s = seconds(request.query.get("timeout", 0), "timeout", MOST_WAIT_S)
        return Reply(200, packform.pack(await run(master, request, self.operation, _arguments(request.body), wait_s)))


def _arguments(body: bytes) -> list[bytes]:
    check(body)
    try:
        given = msgpack.unpackb(body, strict_map_key=False, raw=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        given = None
    if not isinstance(given, list):
        raise invalid(None, "expected a list of the script's arguments")
    arguments = [str(argument).encode() if type(argument) is int else argument for argument in given]
    for index, argument in enumerate(arguments):
        if not isinstance(argument, bytes):
            raise invalid(f"[{index}]", "expected text or binary data, an argument of the script")
    return arguments


class Own(NamedTuple):
    """A request of the server's own, and who answers it."""

    operation: Operation
    handler: Handler


def own(handler: Handler) -> Own:
    """Have a handler answer what its docstring says, in the words of a script's head; it is called as it is."""
    head = f"{inspect.getdoc(handler)}\n@argv nothing\n@flags read"
    return Own(heads.read(handler.__name__, head), handler)
