"""Requests as calls of operations. `run`: a call, whichever way it came, for who may ask for the queues that it names,
together with others where that is cheaper, and with what follows from it here. Then each kind of request: with the
script's own arguments; with those that its head says, and its reply as an answer; and what is more than one call.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

import msgpack
import msgspec
from msgspec import Raw
from msgspec.msgpack import encode

from jqmaster.engine import calling, tracing
from jqmaster.engine.packform import FALSE, NIL
from jqmaster.engine.replies import pairs
from jqmaster.engine.waiting import NOTHING
from jqmaster.errors import JQError
from jqmaster.manifest import contract
from jqmaster.manifest.contract import CONDITIONS, Argument, Operation, Type
from jqmaster.manifest.manifest import operations, read
from jqmaster.server.http import within
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, unknown_field
from jqmaster.server.reader import extended, map_of, members, parts, printable, unpacked

MOST_WAIT_S = 300
_MOST_ARGUMENTS = 10_000  # more than any script takes; to read millions would take seconds
# The first read begins a result's time; of a job that is waited for more is published.
_WRITING = ("result", "poll_job")
_NOTED = frozenset(
    name for name, operation in operations().items() if any(one.type == "actor" for one in operation.arguments)
)
"""Operations of which the trail says who called them."""
_INTEGER = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_PLAIN: Mapping[bytes, Any] = {NIL: None, FALSE: False}
"""What is as good as absent where a call has several replies."""
_QUERIED = {"flag": bool, "integer": _INTEGER, "ms": _INTEGER, "moment_ms": _INTEGER}
"""What stands in a query as text; all else is text."""


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
        arguments[0] = encode({**members(arguments[0]), "key": who.key_id})
    elif spec and name in _NOTED:
        arguments[0] = encode({**members(arguments[0]), "actor": who.name})
    if name == "pick":
        reply = await _pick(master, request, arguments, spec, wait_s)
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
    picking, leaving = (asyncio.ensure_future(one) for one in (master.waiting.pick(spec, wait_s), request.receive()))
    try:
        await asyncio.wait((picking, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not picking.done():
            picking.cancel()  # it may still come back with jobs just picked
            await asyncio.wait((picking,))
        return NOTHING if picking.cancelled() else picking.result()
    finally:
        picking.cancel()
        leaving.cancel()


# -- requests -------------------------------------------------------------------------------------


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
        wait_s = timeout_s(request.query.get("timeout", 0))
        return Reply(200, encode(await run(master, request, self.operation, _arguments(request.body), wait_s)))


def timeout_s(value: Any) -> float:
    """How long a request may wait, or 400."""
    with contextlib.suppress(TypeError, ValueError):
        if 0 <= (seconds := float(value)) <= MOST_WAIT_S:
            return seconds
    raise invalid("timeout", f"expected 0 to {MOST_WAIT_S} seconds, got {printable(str(value), 40)}")


def _arguments(body: bytes) -> list[bytes]:
    with contextlib.suppress(ValueError, TypeError, msgpack.UnpackException):
        given = msgpack.unpackb(body, raw=True, max_array_len=_MOST_ARGUMENTS, max_map_len=0)
        if isinstance(given, list) and {*map(type, given)} <= {bytes, int}:
            return [str(one).encode() if isinstance(one, int) else one for one in given]
    what = f"one list of the script's arguments, {_MOST_ARGUMENTS} at most: text, binary data or integers"
    raise invalid(None, f"expected {what}")


def in_query(arguments: list[Argument]) -> Iterator[tuple[str, Argument, str]]:
    """Each parameter of a query, what it is, and the member of which map; the conditions of `where` stand each by
    itself."""
    for one in arguments:
        if one.type == "Where":
            yield from ((name, Argument(name=name, type=of), one.name) for name, (of, _) in CONDITIONS.items())
        else:
            yield one.name, one, ""


class Translation(Route):
    """An operation's request, both ways, as its head says it."""

    def __init__(self, operation: Operation, route: contract.Route) -> None:
        queried, body = operation.stand(route)
        self._queried = {name: (argument, outer) for name, argument, outer in in_query(queried)}
        super().__init__(operation, route.method, route.path, self._queried, takes_body=bool(body))
        self._headers = {argument.name: argument.header for argument in body if argument.header}
        self._body = {argument.name for argument in (*operation.arguments, *route.parameters)} - {route.place}
        self._behind = operation.behind
        self._may_wait = bool(route.parameters)

    async def answer(self, master: Master, request: Request) -> Reply:
        """As the operation does."""
        given = self._read(request)
        wait_s = timeout_s(unpacked(given.pop("timeout", None)) or 0) if self._may_wait else 0.0
        # Conditions stand by themselves in a query, and so do options in a body.
        request.rename = lambda path: path.removeprefix("where." if self._queried else "options.")
        arguments = cast(list[bytes], calling.packed(self.operation, given, encode))
        return answer_of(self.operation.reply(given), await run(master, request, self.operation, arguments, wait_s))

    def _read(self, request: Request) -> dict[str, Any]:
        """The arguments by name: those of the path and the query, and those of the body, each packed; of lists behind
        the spec the parts. Raises 400."""
        given: dict[str, Any] = {}
        for name, text in request.query.items():
            argument, outer = self._queried[name]
            if text or argument.type != "cursor":
                (given.setdefault(outer, {}) if outer else given)[name] = value_of(argument, text)
        body = members(request.body) if request.body else {}
        for name, header in self._headers.items():
            if name not in body and (shown := request.header(header)) is not None:
                given[name] = shown
        for name, value in request.params.items():
            given[name] = value.encode() if name in self._behind else value
        for name, packed in body.items():
            if name not in self._body:
                raise unknown_field(name, self._body)
            if name not in self._behind:
                given[name] = unpacked(packed) if name in ("timezone", "tz") else _PLAIN.get(bytes(packed), packed)
            elif kind := self.operation.named[name].of.of:
                given[name] = parts(packed, name, kind.name, tracing.carried(request.headers))
            elif bytes(packed) != NIL:
                given[name] = bytes(packed)
        return given


class Own(Translation):
    """A request that is more than one call of a script, or none. The docstring of who answers it is its head."""

    def __init__(self, handler: Callable[[Master, Request], Awaitable[Reply]]) -> None:
        head = f"{inspect.getdoc(handler)}\n@argv nothing\n@flags read"
        operation = read(handler.__name__, head)
        super().__init__(operation, operation.routes[0])
        self._handler = handler

    async def answer(self, master: Master, request: Request) -> Reply:
        """As the handler does."""
        return await self._handler(master, request)


def value_of(argument: Argument, text: str | list[str]) -> Any:
    """What a parameter of the query says. Raises 400."""
    if argument.of.kind == "list":
        return [text] if isinstance(text, str) else text
    if not isinstance(text, str):
        raise invalid(argument.name, "given twice")
    if argument.type == "Matcher":
        return Raw(to_msgpack(text.encode(), argument.name))
    try:
        value: Any = msgspec.convert(text, _QUERIED.get(argument.type, str), strict=False)
    except msgspec.ValidationError:
        raise invalid(argument.name, f"expected {argument.type}, got {printable(text, 40)!r}") from None
    return text.split(",") if argument.name == "status" and "," in text else value


# -- replies --------------------------------------------------------------------------------------


def answer_of(declared: contract.Reply, reply: Any) -> Reply:
    """The answer that a script's reply is."""
    match declared.of.name or declared.of.kind:
        case "nothing":
            return Reply(204)
        case "result":
            return Reply(200, _result(reply))
        case "enqueued":
            shown = {"job_ids": _text(reply[::2]), "created": [bool(one) for one in reply[1::2]]}
        case "picked":
            shown = _picked(reply)
        case "finished":
            shown = _finished(reply)
        case "page":
            cursor, *entries = reply
            looked = {"looked": entries.pop(0)} if entries and isinstance(entries[0], int) else {}
            shown = {declared.name: _shown(declared.of, entries), "cursor": cursor.decode(), **looked}
        case _:
            shown = _shown(declared.of, reply)
            shown = {declared.name: shown} if declared.name else shown
    return Reply(200, encode(shown))


def _shown(of: Type, value: Any) -> Any:
    """A reply, or a part of it. Documents are packed already."""
    if of.kind == "document":
        return None if value is None else Raw(value)
    if of.of:
        return [_shown(of.of, entry) for entry in value]
    if of.kind != "members":
        return bool(value) if of.name == "flag" else _text(value)
    values = value if len(of.members) > 1 else [value]
    return {name: _shown(inner, one) for (name, inner), one in zip(of.members, values, strict=True)}


def _text(value: Any) -> Any:
    """Text for bytes, also in a list."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def _picked(reply: list[Any]) -> dict[str, Any]:
    """Each job's document with its argument, unread."""
    jobs = [Raw(extended(document, argument=argument)) for document, argument in pairs(reply[1:])]
    return {"jobs": jobs, "next_ms": reply[0]}


def _finished(reply: list[Any]) -> dict[str, Any]:
    """For each outcome its state, and the ids of jobs that followed; what was picked behind them begins with a
    number."""
    count = next((at for at, one in enumerate(reply) if isinstance(one, int)), len(reply))
    answers = [one if isinstance(one, list) else [one] for one in reply[:count]]
    body = {"states": [_text(one[0]) for one in answers], "job_ids": [_text(one[1::2]) for one in answers]}
    return body | (_picked(reply[count:]) if count < len(reply) else {})


def _result(reply: list[bytes]) -> bytes:
    state, *result = reply
    if not result:
        why = "keeps no result" if state == b"done" else "has no result"
        raise HttpError("CONFLICT", f"the job is {state.decode()} and {why}")
    return result[0]
