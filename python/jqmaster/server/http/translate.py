"""Requests into arguments of scripts, and their replies into answers, as the head of the script says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jqmaster.engine import packform, tracing, zones
from jqmaster.engine.calling import contract_of
from jqmaster.engine.packform import NIL
from jqmaster.engine.replies import pairs
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument, Operation, Route
from jqmaster.manifest.types import CONDITIONS, Type
from jqmaster.server.http.calls import run
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds, unknown_field
from jqmaster.server.reader import ITEMS, check, members, parts, parts_of, printable, unpacked

_ID = re.compile(r"id|ids\[0\]|jobs\[0\]\.id")
_FLAGS = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_INTEGERS = {"integer": "an integer", "ms": "milliseconds", "moment_ms": "milliseconds since 1970"}


class Translation:
    """One request of an operation, both ways. It is the request's handler where none is written by hand."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.route = route
        known = {argument.name: argument for argument in operation.arguments}
        self.query = {} if route.has_body or route.method not in ("GET", "DELETE") else dict(_query(route, known))
        self.query |= {one.name: (one, "") for one in route.parameters if one.name in route.query}
        own = [one for one in route.parameters if one.name not in route.query]
        stands = [known[name] for name in route.arguments if name in known] if route.has_body else []
        self._body = {one.name: one for one in (*stands, *own)}
        self._header = next(((one.argument, one.name) for one in route.headers if one.argument), ("", ""))
        self._traced = any(one.name == "traceparent" for one in route.headers)
        # What has a list of items behind it; the body may be one of these.
        self._behind = operation.behind
        lists = {name: of for name in self._behind if (of := known[name].of.of)}
        self._items = {name: ITEMS[of.name] for name, of in lists.items() if of.name in ITEMS}
        single = next((name.removesuffix("[0]") for name in route.whole if name.endswith("[0]")), "")
        self._single = self._items.get(single)
        self._is_of_a_job = route.path.startswith("/job/{")
        self._names = list(self._renamed())
        self._status = route.statuses[0] if route.statuses else 200
        self._timeout = next((one for one in route.parameters if one.name == "timeout"), None)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        arguments, given, wait_s = self.read(request)
        try:
            reply = await run(master, request, self.operation, arguments, wait_s)
        except JQError as error:
            self.refuse_id(error, request)
            raise
        return self._answer(reply, given, request)

    def read(self, request: Request) -> tuple[list[bytes], Mapping[str, Any], float]:
        """The script's arguments, what there is of them by name, and how long to wait. Raises 400 for what the request
        does not know."""
        request.rename = self._rename
        spec: dict[str, Any] = dict(self.route.fixed)
        if self._single is not None:
            return self._read_single(request, spec), {}, 0.0
        if self.route.place:
            _put(spec, self.route.place, request.params[self.route.parameter])
        for name, (argument, to) in self.query.items():
            value = value_of(argument, request.query.get(name, self.route.defaults.get(to)))
            if value is not None and to:
                _put(spec, to, value)
        body = self._read_body(request)
        wait_s = 0.0
        if "timeout" in body:
            wait_s = self.wait_s(unpacked(body.pop("timeout")))
        self._read_header(request, body)
        if "timezone" in body:
            spec |= zones.with_rule({name: unpacked(body.pop(name)) for name in ("timezone", "tz") if name in body})
        return list(self._arguments(spec, body, request)), {**spec, **body}, wait_s

    def wait_s(self, timeout: Any) -> float:
        """For how long this may take, as its parameter `timeout` says; None where it does not. Raises 400."""
        assert self._timeout is not None
        return seconds(self._timeout.default if timeout is None else timeout, "timeout", self._timeout.most or 0)

    def _read_single(self, request: Request, spec: dict[str, Any]) -> list[bytes]:
        """Of a body that is one of what the script takes a list of."""
        assert self._single is not None
        item, *rest = parts_of(request.body, self._single, self._context(request))
        if self.route.place:
            if "id" in members(item):
                raise invalid("id", "unknown field")
            item = packform.extend_map(item, {"id": packform.pack(request.params["id"])})
        options = {name: packform.pack(value) for name, value in spec.items()}
        self._read_header(request, options)
        return [*([packform.raw_map(options)] if options else []), item, *rest]

    def _context(self, request: Request) -> dict[str, str] | None:
        return tracing.carried(request.headers) if self._traced and b"traceparent" in request.headers else None

    def _read_body(self, request: Request) -> dict[str, bytes]:
        body: dict[str, bytes] = {}
        if self._body and (request.body or self.route.required):
            check(request.body)
            body = members(request.body)
            for name in body:
                if name not in self._body:
                    raise unknown_field(name, self._body)
        for name in self.route.required:
            if name in self._behind and name not in body:
                raise invalid(name, f"missing; expected {self._body[name].type}")
        return body

    def _read_header(self, request: Request, fields: dict[str, bytes]) -> None:
        """What may stand in a header instead of in the body."""
        name, header = self._header
        if not name:
            return
        text = request.header(header)
        if text is None:
            if name not in fields and not self.operation.argument(name).optional:
                raise invalid(header, "missing; send the id that POST /worker gave, or to pull, any name")
            return
        if fields.setdefault(name, packform.pack(text)) != packform.pack(text):
            raise invalid(name, f"differs from the header {header}")
        request.rename = lambda path: header if path == name else self._rename(path)

    def _arguments(self, spec: Mapping[str, Any], body: dict[str, bytes], request: Request) -> Iterator[bytes]:
        behind = {name: body.pop(name) for name in self._behind if name in body}
        for position in self.operation.positions:
            name = position.removesuffix("...")
            if position == "spec" or (position == "[spec]" and (spec or body)):
                yield packform.extend_map(packform.pack(spec), body)
            elif name in self._items:
                if name in behind:
                    yield from parts(behind[name], name, self._items[name], self._context(request))
            elif position.endswith("..."):
                yield from (str(one).encode(errors="surrogateescape") for one in spec[name])
            elif position in behind:
                yield behind[position]
            elif self.operation.reply(spec) is not self.operation.replies[0]:
                continue  # another call, to which it does not belong
            elif position in spec:
                yield str(spec[position]).encode(errors="surrogateescape")
            elif position != "[spec]":
                yield NIL if self.operation.argument(position).default == "nil" else b""
        body |= behind

    def _renamed(self) -> Iterator[tuple[str, str, bool]]:
        """What a script's error may name, and what the request calls it; whether what is behind it is left out."""
        if place := self.route.place:
            yield place, self.route.parameter, True
            if place.endswith("[0]"):
                yield place.removesuffix("[0]"), self.route.parameter, True
        for name, (argument, to) in self.query.items():
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
        if path.startswith("jobs[0]") and (self._single is not None or self._is_of_a_job):
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

    # -- replies ----------------------------------------------------------------------------------

    def _answer(self, reply: Any, given: Mapping[str, Any], request: Request) -> Reply:
        """The answer that a reply is."""
        declared = self.operation.reply(given) if len(self.operation.replies) > 1 else self.operation.replies[0]
        of = declared.of
        match of.name or of.kind:
            case "nothing":
                return Reply(204)
            case "state":
                return self._state(reply, request)
            case "states":
                if self.route.is_of_one:
                    return self._state(reply[0], request)
                return Reply(self._status, packform.pack({declared.name: _text(reply)}))
            case "enqueued":
                return self._enqueued(reply)
            case "picked":
                return Reply(200, packform.raw_map(_jobs_of(reply)))
            case "finished":
                return _finished(reply, "pick" in given)
            case "result":
                return _result(*reply)
            case "list" | "page":
                return self._listed(declared.name, of, reply, request)
        return Reply(self._status, _packed(of, reply))

    def _listed(self, name: str, of: Type, reply: Any, request: Request) -> Reply:
        assert of.of is not None
        cursor, *entries = reply if of.kind == "page" else (None, *reply)
        looked = {}
        if of.of.kind == "document" and entries and isinstance(entries[0], int):
            looked["looked"] = packform.pack(entries.pop(0))
        packed = [_packed(of.of, entry) for entry in entries]
        if self.route.is_of_one:
            return self._first(packed, request)
        body = {name: packform.raw_array(packed)}
        if cursor is not None:
            body["cursor"] = packform.pack(cursor.decode())
        return Reply(200, packform.raw_map({**body, **looked}))

    def _first(self, packed: list[bytes], request: Request) -> Reply:
        if packed and packed[0] != NIL:
            return Reply(200, packed[0])
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
        body = {"job_id": ids[0]} if self._single is not None else {"job_ids": ids, "created": created}
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
    body = {"states": packform.pack(states), "job_ids": packform.pack(followed)}
    return Reply(200, packform.raw_map(body | (_jobs_of(reply[count:]) if has_pick else {})))


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
    values = reply if len(of.members) > 1 else [reply]
    return {
        name: bool(value) if member.name == "flag" else _text(value)
        for (name, member), value in zip(of.members, values, strict=True)
    }


def _packed(of: Type, value: Any) -> bytes:
    """A reply, or an entry of a list, as MessagePack. Documents are packed already."""
    if of.kind == "document" and value is not None:
        packed: bytes = value
        return packed
    if of.kind == "members":
        return packform.pack(_members(of, value))
    return packform.pack(bool(value) if of.name == "flag" else _text(value))


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
    if argument.type == "cursor":
        return text or None
    if argument.type == "flag":
        if text not in _FLAGS:
            raise _unexpected(argument, "true or false", text)
        return _FLAGS[text]
    if argument.type in _INTEGERS:
        if not re.fullmatch(r"[0-9]{1,15}", text):
            raise _unexpected(argument, _INTEGERS[argument.type], text)
        return int(text)
    if argument.type == "Matcher":
        try:
            return unpacked(to_msgpack(text.encode(errors="surrogateescape")))
        except HttpError:
            raise _unexpected(argument, "a map of conditions as JSON", text) from None
    return text.split(",") if argument.name == "status" and "," in text else text


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
