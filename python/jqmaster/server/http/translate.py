"""Requests into arguments of scripts, and their replies into answers, as the head of the script says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgpack

from jqmaster.engine import packform, zones
from jqmaster.engine.calling import contract_of
from jqmaster.engine.packform import NIL
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument, Operation, Route
from jqmaster.manifest.types import CONDITIONS, Type
from jqmaster.server.http.asking import ask
from jqmaster.server.http_error import HttpError, from_engine, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, flag, refuse_unknown, seconds
from jqmaster.server.reader import Reader, pack_spec, printable

_ID = re.compile(r"id|ids\[0\]|jobs\[0\]\.id")
_UNREAD = ("value", "any")
_CONFLICTS = {
    "change": "the job runs or has ended; of such only the tags can be changed",
    "kick": "the job does not run",
    "retry": "the job is neither error, cancelled, skipped nor retrying, or its unique key is another's by now",
    "discard": "the job is running",
}


class Translation:
    """One request of an operation, both ways. It is the request's handler where none is written by hand."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.route = route
        known = {argument.name: argument for argument in operation.arguments}
        self._behind = operation.behind
        self._takes_actor = any(argument.type == "actor" for argument in operation.arguments)
        self._query = {} if route.has_body or route.method not in ("GET", "DELETE") else dict(_query(route, known))
        self._query |= {one.name: (one, "") for one in route.parameters if one.name in route.query}
        own = [one for one in route.parameters if one.name not in route.query]
        stands = [known[name] for name in route.arguments if name in known] if route.has_body else []
        self._body = {one.name: one for one in (*stands, *own)}
        self._unread = frozenset(
            name for name, one in self._body.items() if one.type in _UNREAD or name in self._behind
        )
        self._is_of_a_job = route.path.startswith("/job/{")
        self._names = list(self._renamed())
        self._timeout = next((one for one in route.parameters if one.name == "timeout"), None)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        arguments, given = self.read(request)
        try:
            reply = await ask(master, request.who, self.operation.name, *arguments)
        except JQError as error:
            self.refuse_id(error, request)
            raise
        return self._answer(reply, self.operation.reply(given), request)

    @property
    def query(self) -> tuple[str, ...]:
        """The names of the query's parameters."""
        return tuple(self._query)

    def read(self, request: Request) -> tuple[list[bytes], dict[str, Any]]:
        """The script's arguments, and those of its spec by name. Raises 400 for what the operation does not know."""
        request.rename = self._rename
        spec: dict[str, Any] = dict(self.route.fixed)
        if self._takes_actor:
            spec["actor"] = request.who.name
        if self.route.place:
            _put(spec, self.route.place, request.params[self.route.parameter])
        for name, (argument, to) in self._query.items():
            value = value_of(argument, request.arguments.get(name, self.route.defaults.get(to)))
            if value is not None and to:
                _put(spec, to, value)
        body = self._read_body(request)
        values: dict[str, bytes] = {}
        raw: dict[str, bytes] = {}
        for name, argument in self._body.items():
            if name in self._behind:
                if name in self.route.required and name not in body:
                    raise invalid(name, f"missing; expected {_expected(argument)}")
                values[name] = body.get(name, NIL if argument.default == "nil" else b"")
            elif name in body and name in self._unread:
                raw[name] = body[name]
            elif name in body:
                spec[name] = body[name]
        if "timezone" in self._body:
            spec = zones.with_rule(spec)
        return list(self._arguments(spec, raw, values)), spec

    def _arguments(self, spec: dict[str, Any], raw: dict[str, bytes], values: dict[str, bytes]) -> Iterator[bytes]:
        for position in self.operation.positions:
            if position == "spec":
                yield packform.extend_map(pack_spec(spec), raw)
            elif position.endswith("..."):
                yield from (str(one).encode(errors="surrogateescape") for one in spec[position[:-3]])
            elif position in values:
                yield values[position]
            elif self.operation.reply(spec) is not self.operation.replies[0]:
                continue  # another call, to which it does not belong
            elif position in spec:
                yield str(spec[position]).encode(errors="surrogateescape")
            else:
                yield b""

    def wait_s(self, given: Mapping[str, Any]) -> float:
        """For how long this may take, as its parameter `timeout` says. Raises 400."""
        assert self._timeout is not None
        return seconds(given.get("timeout", self._timeout.default), "timeout", self._timeout.most or 0)

    def _read_body(self, request: Request) -> dict[str, Any]:
        if not self._body or (not request.body and not self.route.required):
            return {}
        body = Reader(request.body).map("", self._unread)
        refuse_unknown(body, self._body)
        return body

    def _renamed(self) -> Iterator[tuple[str, str, bool]]:
        """What a script's error may name, and what the request calls it; whether what is behind it is left out."""
        if place := self.route.place:
            yield place, self.route.parameter, True
            if place.endswith("[0]"):
                yield place.removesuffix("[0]"), self.route.parameter, True
        for name, (argument, to) in self._query.items():
            if to:
                # In a query a list is one text.
                yield to, name, argument.type != "Matcher"
        for name, argument in self._body.items():
            yield name, name, False
            if argument.type == "any":
                # Nothing else can spoil the spec as such: it is binary data there, which no spec may hold.
                yield "spec", name, True

    def _rename(self, path: str) -> str:
        # Asked about one job, a script that takes many still counts them.
        if path.startswith("jobs[0]") and self._is_of_a_job:
            path = path[len("jobs[0]") :].removeprefix(".") or "id"
        for to, name, is_whole in self._names:
            if path == to or path.startswith((f"{to}.", f"{to}[")):
                return name if is_whole else name + path[len(to) :]
        return path

    def refuse_id(self, error: JQError, request: Request) -> None:
        """An id that cannot be one is an unknown job, not a bad request."""
        is_bare = self.operation.positions[0] in ("id", "ids...")
        if self._is_of_a_job and (is_bare or (error.path and _ID.fullmatch(error.path))):
            if error.code in ("INVALID", "NOTFOUND"):
                raise no_such_job(request.params["id"]) from None
            raise from_engine(error, None) from None

    def _answer(self, reply: Any, told: Any, request: Request) -> Reply:
        of: Type = told.of
        status = self.route.statuses[0] if self.route.statuses else 200
        if of.name == "nothing":
            return Reply(204)
        if of.kind == "document":
            return Reply(status, reply)
        if of.name in ("state", "states") and (of.name == "state" or self.route.is_of_one):
            return self._state(reply[0] if isinstance(reply, list) else reply, request)
        if of.name == "states":
            return Reply(status, packform.pack({told.name: [_text(state) for state in reply]}))
        if of.kind == "members":
            return Reply(status, packform.pack(_members(of, reply)))
        cursor, *documents = reply if of.kind == "page" else (None, *reply)
        if self.route.is_of_one:
            return self._first(documents, request)
        looked = {"looked": packform.pack(documents.pop(0))} if documents and isinstance(documents[0], int) else {}
        if of.of is not None and of.of.kind == "members":
            documents = [packform.pack(_members(of.of, row)) for row in documents]
        pairs = {told.name: packform.raw_array(documents)}
        if cursor is not None:
            pairs["cursor"] = packform.pack(cursor.decode())
        return Reply(status, packform.raw_map({**pairs, **looked}))

    def _first(self, documents: list[bytes], request: Request) -> Reply:
        if not documents:
            of = self.route.parameter
            what, name = self.route.path.split("/")[1], request.params[of]
            raise HttpError(404, "NOTFOUND", f"{of}: no such {what}: {printable(name, 255)}", of)
        return Reply(200, documents[0])

    def of_one(self, reply: list[bytes], request: Request) -> Reply:
        """The answer about one job, of a reply about many."""
        return self._state(reply[0], request)

    def _state(self, state: bytes | None, request: Request) -> Reply:
        if state is None or state == b"NOTFOUND":
            raise no_such_job(request.params["id"])
        if state == b"CONFLICT":
            raise HttpError(409, "CONFLICT", _CONFLICTS[self.operation.name])
        return Reply(200, packform.pack({"status": state.decode("ascii")}))


def translation(operation: str, request: str) -> Translation:
    """Of an operation's request, such as `GET /job/{ids[0]}/polling`, for what has a handler of its own."""
    contract = contract_of(operation)
    [route] = [one for one in contract.routes if f"{one.method} {one.path}" == request]
    return Translation(contract, route)


def _query(route: Route, known: Mapping[str, Argument]) -> Iterator[tuple[str, tuple[Argument, str]]]:
    """Each parameter of a query, and where it stands in the spec. Conditions stand each by itself."""
    for name in route.arguments:
        outer, _, inner = name.partition(".")
        if inner or known[outer].type == "Where":
            for member in [inner] if inner else CONDITIONS:
                yield member, (Argument(name=member, type=CONDITIONS[member][0]), f"{outer}.{member}")
        else:
            yield name, (known[name], name)


def _members(of: Type, reply: Any) -> dict[str, Any]:
    parts = reply if len(of.members) > 1 else [reply]
    return {
        name: bool(value) if member.name == "flag" else _text(value)
        for (name, member), value in zip(of.members, parts, strict=True)
    }


def _expected(argument: Argument) -> str:
    return "a map of conditions" if argument.type == "Matcher" else "a value"


def _put(spec: dict[str, Any], to: str, value: Any) -> None:
    """Put a value where it belongs."""
    outer, _, name = to.rpartition(".")
    if outer.endswith("[0]"):
        raise AssertionError(to)  # of what has a handler
    if outer:
        spec = spec.setdefault(outer, {})
    if name.endswith("[0]"):
        spec[name.removesuffix("[0]")] = [value]
    else:
        spec[name] = value


def value_of(argument: Argument, text: str | None) -> Any:
    """What a parameter of the query says; None where the script knows best. Raises 400."""
    if text is None:
        return None
    of = argument.of
    if of.words and text not in of.words:
        raise _unexpected(argument, f"one of {', '.join(of.words)}", text)
    match argument.type:
        case "cursor":
            return text or None
        case "flag":
            return flag(text, argument.name)
        case "moment_ms" | "ms":
            if not re.fullmatch(r"[0-9]{1,15}", text):
                since = " since 1970" if argument.type == "moment_ms" else ""
                raise _unexpected(argument, f"milliseconds{since}", text)
            return int(text)
        case "Matcher":
            return _matcher(argument, text)
        case "integer":
            if not re.fullmatch(r"[0-9]{1,6}", text):
                raise _unexpected(argument, f"an integer from {argument.least} to {argument.most}", text)
            return int(text)
    return text.split(",") if argument.name == "status" and "," in text else text


def _matcher(argument: Argument, text: str) -> Any:
    try:
        packed = to_msgpack(text.encode(errors="surrogateescape"))
    except HttpError:
        raise _unexpected(argument, "a map of conditions as JSON", text) from None
    return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogateescape")


def _unexpected(argument: Argument, expected: str, text: str) -> HttpError:
    return invalid(argument.name, f"expected {expected}, got {printable(text, 40)!r}")


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError(404, "NOTFOUND", f"no such job: {printable(job_id)}")
