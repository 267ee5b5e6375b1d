"""Requests into arguments of scripts, and their replies into answers, as the head of the script says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgpack

from jqmaster.engine import packform, tracing, zones
from jqmaster.engine.calling import contract_of
from jqmaster.engine.packform import NIL
from jqmaster.engine.replies import pairs
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument, Operation, Route
from jqmaster.manifest.contract import Reply as Declared
from jqmaster.manifest.types import CONDITIONS, Type
from jqmaster.server.http.asking import ask, refuse_lacking, said_by_the_server
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, flag, read_item, read_items, refuse_unknown, seconds
from jqmaster.server.reader import Reader, pack_spec, printable

_ID = re.compile(r"id|ids\[0\]|jobs\[0\]\.id")
_UNREAD = ("value", "any")
_Writer = Callable[[Declared, Any, Mapping[str, Any], Request], Reply]


class Translation:
    """One request of an operation, both ways. It is the request's handler where none is written by hand."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.route = route
        known = {argument.name: argument for argument in operation.arguments}
        self._behind = operation.behind
        self._query = {} if route.has_body or route.method not in ("GET", "DELETE") else dict(_query(route, known))
        self._query |= {one.name: (one, "") for one in route.parameters if one.name in route.query}
        own = [one for one in route.parameters if one.name not in route.query]
        stands = [known[name] for name in route.arguments if name in known] if route.has_body else []
        self._body = {one.name: one for one in (*stands, *own)}
        self._header = next(((one.argument, one.name) for one in route.headers if one.argument), None)
        # What has a list of items, each with a value behind it; the body may be one of these.
        self._items = {name: of.name for name in self._behind if (of := known[name].of.of) and of.kind == "document"}
        self._single = next((self._items[one.removesuffix("[0]")] for one in route.whole if one.endswith("[0]")), "")
        self._values = {name for name in self._behind if (of := known[name].of.of) and of.name == "value"}
        self._unread = frozenset(
            name for name, one in self._body.items()
            if one.type in _UNREAD or (name in self._behind and name not in (*self._items, *self._values))
        )  # fmt: skip
        self._is_of_a_job = route.path.startswith("/job/{")
        self._names = list(self._renamed())
        self._own = {one.name for one in own}
        self._signed = operation.name == "register" or any(one.type == "actor" for one in operation.arguments)
        self._replies = [(told, self._writer(told)) for told in operation.replies]
        self._timeout = next((one for one in route.parameters if one.name == "timeout"), None)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        arguments, given = self.read(request)
        wait_s = 0.0 if self._timeout is None else self.wait_s(given)
        given.pop("timeout", None)
        try:
            reply = await ask(master, request, self.operation, arguments, given, wait_s)
        except JQError as error:
            self.refuse_id(error, request)
            raise
        return self._answer(reply, given, request)

    @property
    def query(self) -> tuple[str, ...]:
        """The names of the query's parameters."""
        return tuple(self._query)

    def read(self, request: Request) -> tuple[list[bytes], dict[str, Any]]:
        """The script's arguments, and by name what the request says. Raises 400 for what the operation does not know,
        403 for what needs another role."""
        request.rename = self._rename
        spec: dict[str, Any] = dict(self.route.fixed)
        if self._single:
            return self._read_single(request, spec)
        if self.route.place:
            _put(spec, self.route.place, request.params[self.route.parameter])
        for name, (argument, to) in self._query.items():
            value = value_of(argument, request.arguments.get(name, self.route.defaults.get(to)))
            if value is not None and to:
                _put(spec, to, value)
        body = self._read_body(request)
        self._read_header(request, body)
        given = {**spec, **body}
        values: dict[str, Any] = {}
        raw: dict[str, bytes] = {}
        for name, value in body.items():
            if name in self._behind:
                values[name] = value
            elif name in self._unread:
                raw[name] = value
            elif name not in self._own:
                spec[name] = value
        if self.operation.restricted:
            refuse_lacking(request, self.operation, spec)
        if self._signed:
            spec |= said_by_the_server(request, self.operation, spec)
        if "timezone" in self._body:
            spec = zones.with_rule(spec)
        return list(self._arguments(spec, raw, values)), given

    def _read_single(self, request: Request, spec: dict[str, Any]) -> tuple[list[bytes], dict[str, Any]]:
        """Of a body that is one of what the script takes a list of."""
        item, rest = read_item(Reader(request.body), "", self._single)
        if self.route.place:
            if "id" in item:
                raise invalid("id", "unknown field")
            item = {"id": request.params["id"], **item}
        self._read_header(request, spec)
        if b"traceparent" in request.headers:
            tracing.carry(tracing.carried(request.headers), item)
        return [*([pack_spec(spec)] if spec else []), pack_spec(item), *rest], {}

    def _read_header(self, request: Request, fields: dict[str, Any]) -> None:
        """What may stand in a header instead of in the body."""
        if self._header is None:
            return
        name, header = self._header
        text, in_body = request.header(header), fields.get(name)
        if text is None and in_body is None and not self.operation.argument(name).optional:
            raise invalid(header, "missing; send the id that POST /worker gave, or to pull, any name")
        if text is not None:
            if in_body not in (None, text):
                raise invalid(name, f"differs from the header {header}")
            fields[name] = text
            request.rename = lambda path: header if path == name else self._rename(path)

    def _arguments(self, spec: dict[str, Any], raw: dict[str, bytes], values: dict[str, Any]) -> Iterator[bytes]:
        for position in self.operation.positions:
            name = position.removesuffix("...")
            if position == "spec" or (position == "[spec]" and spec):
                yield packform.extend_map(pack_spec(spec), raw)
            elif name in self._items or name in self._values:
                yield from values.get(name, ())
            elif position.endswith("..."):
                yield from (str(one).encode(errors="surrogateescape") for one in spec[name])
            elif position in values:
                yield values[position]
            elif self.operation.reply(spec) is not self.operation.replies[0]:
                continue  # another call, to which it does not belong
            elif position in spec:
                yield str(spec[position]).encode(errors="surrogateescape")
            elif position != "[spec]":
                yield NIL if self.operation.argument(position).default == "nil" else b""

    def wait_s(self, given: Mapping[str, Any]) -> float:
        """For how long this may take, as its parameter `timeout` says. Raises 400."""
        assert self._timeout is not None
        return seconds(given.get("timeout", self._timeout.default), "timeout", self._timeout.most or 0)

    def _read_body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self._body and (request.body or self.route.required):
            reader = Reader(request.body)
            special = {name: self._reads(reader, name, request) for name in (*self._items, *self._values)}
            body = reader.map("", self._unread, special)
            refuse_unknown(body, self._body)
        for name in self.route.required:
            if name in self._behind and name not in body:
                raise invalid(name, f"missing; expected {_expected(self._body[name])}")
        return body

    def _reads(self, reader: Reader, name: str, request: Request) -> Callable[[str], list[bytes]]:
        if name in self._values:
            return lambda path: [reader.blob() for _ in reader.items(path)]
        context = tracing.carried(request.headers)
        carry = partial(tracing.carry, context) if context else None
        return lambda path: read_items(reader, path, self._items[name], carry)

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
        if path.startswith("jobs[0]") and (self._single or self._is_of_a_job):
            path = path[len("jobs[0]") :].removeprefix(".") or ("id" if self._is_of_a_job else "")
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

    def _answer(self, reply: Any, given: Mapping[str, Any], request: Request) -> Reply:
        told, write = self._replies[0] if len(self._replies) == 1 else self._told(given)
        return write(told, reply, given, request)

    def _told(self, given: Mapping[str, Any]) -> tuple[Declared, _Writer]:
        told = self.operation.reply(given)
        return next(pair for pair in self._replies if pair[0] is told)

    def _writer(self, told: Declared) -> _Writer:
        """What makes an answer of a reply of this type."""
        of, status = told.of, self.route.statuses[0] if self.route.statuses else 200
        match of.name or of.kind:
            case "nothing":
                return lambda *_: Reply(204)
            case "state":
                return lambda _, reply, __, request: self._state(reply, request)
            case "states" if self.route.is_of_one:
                return lambda _, reply, __, request: self._state(reply[0], request)
            case "states":
                return lambda told, reply, *_: Reply(status, packform.pack({told.name: _text(reply)}))
            case "enqueued":
                return lambda _, reply, *__: self._enqueued(reply)
            case "picked":
                return lambda _, reply, *__: Reply(200, packform.raw_map(_jobs_of(reply)))
            case "finished":
                return lambda _, reply, given, __: _finished(reply, "pick" in given)
            case "result":
                return lambda _, reply, *__: _result(*reply)
            case "members":
                return lambda told, reply, *_: Reply(status, packform.pack(_members(of, reply)))
        return self._documents if of.kind in ("list", "page") else lambda _, reply, *__: Reply(status, reply)

    def _documents(self, told: Declared, reply: Any, _given: Any, request: Request) -> Reply:
        of = told.of
        cursor, *documents = reply if of.kind == "page" else (None, *reply)
        if self.route.is_of_one:
            return self._first(documents, request)
        looked = {"looked": packform.pack(documents.pop(0))} if documents and isinstance(documents[0], int) else {}
        if of.of is not None and of.of.kind == "members":
            documents = [packform.pack(_members(of.of, row)) for row in documents]
        body = {told.name: packform.raw_array(documents)}
        if cursor is not None:
            body["cursor"] = packform.pack(cursor.decode())
        return Reply(200, packform.raw_map({**body, **looked}))

    def _first(self, documents: list[bytes], request: Request) -> Reply:
        if documents and documents[0] is not None:
            return Reply(200, documents[0])
        of = self.route.parameter
        if self._is_of_a_job:
            raise no_such_job(request.params[of])
        what, name = self.route.path.split("/")[1], request.params[of]
        raise HttpError(404, "NOTFOUND", f"{of}: no such {what}: {printable(name, 255)}", of)

    def _state(self, state: bytes | None, request: Request) -> Reply:
        if state is None or state == b"NOTFOUND":
            raise no_such_job(request.params["id"])
        if state == b"CONFLICT":
            raise HttpError(409, "CONFLICT", f"the job cannot be changed so: {self.operation.conflict}")
        return Reply(200, packform.pack({"status": _text(state)}))

    def _enqueued(self, reply: list[Any]) -> Reply:
        ids, created = _text(reply[::2]), [bool(one) for one in reply[1::2]]
        body = {"job_id": ids[0]} if self._single else {"job_ids": ids, "created": created}
        return Reply(201 if any(created) else 200, packform.pack(body))


def _jobs_of(reply: list[Any]) -> dict[str, bytes]:
    """`pick`'s reply as the pairs of an answer: each job's document with its argument, unread."""
    jobs = [packform.extend_map(document, {"argument": argument}) for document, argument in pairs(reply[1:])]
    return {"jobs": packform.raw_array(jobs), "next_ms": packform.pack(reply[0])}


def _finished(reply: list[Any], has_pick: bool) -> Reply:
    """For each outcome its state, and the ids of jobs that followed."""
    count = len(reply) if not has_pick else next(at for at, one in enumerate(reply) if isinstance(one, int))
    answers = reply[:count]
    states = _text([one[0] if isinstance(one, list) else one for one in answers])
    followed = [_text(one[1::2]) if isinstance(one, list) else [] for one in answers]
    told = {"states": packform.pack(states), "job_ids": packform.pack(followed)}
    return Reply(200, packform.raw_map(told | (_jobs_of(reply[count:]) if has_pick else {})))


def _result(state: bytes, *result: bytes) -> Reply:
    if not result:
        why = "keeps no result" if state == b"done" else "has no result"
        raise HttpError(409, "CONFLICT", f"the job is {state.decode()} and {why}")
    return Reply(200, result[0])


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
    """Text for bytes, also in a list."""
    if isinstance(value, list):
        return [one.decode() if isinstance(one, bytes) else one for one in value]
    return value.decode() if isinstance(value, bytes) else value


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError(404, "NOTFOUND", f"no such job: {printable(job_id)}")
