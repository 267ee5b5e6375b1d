"""Requests into arguments of scripts, and their replies into answers, as the head of the script says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jqmaster.engine import packform, tracing, zones
from jqmaster.engine.packform import FALSE, NIL
from jqmaster.engine.replies import pairs
from jqmaster.manifest.contract import Argument, Operation, Route
from jqmaster.manifest.types import CONDITIONS, Type
from jqmaster.server.http.calls import MOST_WAIT_S, run
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds, unknown_field
from jqmaster.server.reader import ITEMS, check, members, parts, printable, unpacked

_FLAGS = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_INTEGERS = {"integer": "an integer", "ms": "milliseconds", "moment_ms": "milliseconds since 1970"}


def in_query(arguments: list[Argument]) -> Iterator[tuple[str, Argument, str]]:
    """Each parameter of a query, what it is, and the member of which map; the conditions of `where` stand each by
    itself."""
    for one in arguments:
        if one.type == "Where":
            yield from ((name, Argument(name=name, type=of), one.name) for name, (of, _) in CONDITIONS.items())
        else:
            yield one.name, one, ""


class Translation:
    """An operation's request, both ways. It is the request's handler where none is written by hand."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.place = route.place
        queried, body = operation.stand(route)
        self.query = {name: (argument, outer) for name, argument, outer in in_query(queried)}
        self._headers = {one.name: one.header for one in body if one.header}
        lists = {name: of for name in operation.behind if (of := operation.argument(name).of.of)}
        self._items = {name: ITEMS[of.name] for name, of in lists.items() if of.name in ITEMS}
        self._may_wait = bool(route.parameters)
        self._has_spec = not {"spec", "[spec]"}.isdisjoint(operation.positions)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        spec, body = self._read(request)
        wait_s = 0.0
        if self._may_wait and "timeout" in body:
            wait_s = seconds(unpacked(body.pop("timeout")), "timeout", MOST_WAIT_S)
        given = _given(spec, body)
        request.rename = self._rename
        reply = await run(master, request, self.operation, list(self._arguments(spec, body, request)), wait_s)
        return answer(self.operation, given, reply)

    def _rename(self, path: str) -> str:
        """What the request calls it: conditions stand by themselves in a query, and so do options in a body."""
        return path.removeprefix("where." if self.query else "options.")

    def _read(self, request: Request) -> tuple[dict[str, Any], dict[str, bytes]]:
        """What stands in the path and the query, and what in the body, each packed. Raises 400."""
        spec: dict[str, Any] = dict(request.params)
        for name, text in request.query.items():
            argument, outer = self.query[name]
            if (value := value_of(argument, text)) is not None:
                (spec.setdefault(outer, {}) if outer else spec)[name] = value
        body: dict[str, bytes] = {}
        if request.body:
            check(request.body)
            body = members(request.body)
        for name in body:
            if name == self.place or (not self._has_spec and name not in self.operation.behind):
                raise unknown_field(name, self.operation.behind)
        for name, header in self._headers.items():
            if (shown := request.header(header)) is not None:
                if body.setdefault(name, packform.pack(shown)) != packform.pack(shown):
                    raise invalid(name, f"differs from the header {header}")
        if "timezone" in body:
            spec |= zones.with_rule({name: unpacked(body.pop(name)) for name in ("timezone", "tz") if name in body})
        return spec, body

    def _arguments(self, spec: Mapping[str, Any], body: dict[str, bytes], request: Request) -> Iterator[bytes]:
        operation = self.operation
        behind = {name: body.pop(name) for name in operation.behind if name in body}
        for position in operation.positions:
            name = position.removesuffix("...")
            if position == "spec" or (position == "[spec]" and (spec or body)):
                yield packform.extend_map(packform.pack(spec), body)
            elif name in self._items and name in behind:
                yield from parts(behind[name], name, self._items[name], tracing.carried(request.headers))
            elif position in behind:
                yield behind[position]
            elif position in spec:
                yield str(spec[position]).encode(errors="surrogateescape")
            elif position != "[spec]" and not position.endswith("...") and not _is_other(operation, spec, body):
                yield NIL if operation.argument(position).default == "nil" else b""


def _is_other(operation: Operation, spec: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether it is the other call of an operation, to which its last argument does not belong."""
    return operation.reply(_given(spec, body)) is not operation.replies[0]


def _given(spec: Mapping[str, Any], body: Mapping[str, bytes]) -> dict[str, Any]:
    """All arguments, without what is nil or false in the body."""
    return {**spec, **{name: value for name, value in body.items() if value not in (NIL, FALSE)}}


def value_of(argument: Argument, text: str | list[str]) -> Any:
    """What a parameter of the query says; None where the script knows best. Raises 400."""
    of = argument.of
    if of.kind == "list":
        return [text] if isinstance(text, str) else text
    if not isinstance(text, str):
        raise invalid(argument.name, "given twice")
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


# -- replies --------------------------------------------------------------------------------------


def answer(operation: Operation, given: Mapping[str, Any], reply: Any) -> Reply:
    """The answer that a script's reply is."""
    declared = operation.reply(given) if len(operation.replies) > 1 else operation.replies[0]
    of = declared.of
    if own := _OWN.get(of.name):
        return Reply(200, own(reply))
    if of.name == "nothing":
        return Reply(204)
    if of.name == "states":
        return Reply(200, packform.pack({declared.name: _text(reply)}))
    if of.kind in ("list", "page"):
        assert of.of is not None
        cursor, *entries = reply if of.kind == "page" else (None, *reply)
        looked = {}
        if of.of.kind == "document" and entries and isinstance(entries[0], int):
            looked["looked"] = packform.pack(entries.pop(0))
        inner = of.of
        body = {declared.name: packform.raw_array([_packed(inner, entry) for entry in entries])}
        if cursor is not None:
            body["cursor"] = packform.pack(cursor.decode())
        return Reply(200, packform.raw_map({**body, **looked}))
    return Reply(200, _packed(of, reply))


def _packed(of: Type, value: Any) -> bytes:
    """A reply, or an entry of a list, as MessagePack. Documents are packed already."""
    if of.kind == "document":
        packed: bytes = NIL if value is None else value
        return packed
    if of.kind != "members":
        return packform.pack(bool(value) if of.name == "flag" else _text(value))
    values = value if len(of.members) > 1 else [value]
    return packform.raw_map({name: _packed(inner, one) for (name, inner), one in zip(of.members, values, strict=True)})


def _text(value: Any) -> Any:
    """Text for bytes, also in a list."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def _enqueued(reply: list[Any]) -> bytes:
    return packform.pack({"job_ids": _text(reply[::2]), "created": [bool(one) for one in reply[1::2]]})


def _picked(reply: list[Any]) -> bytes:
    """Each job's document with its argument, unread."""
    jobs = [packform.extend_map(document, {"argument": argument}) for document, argument in pairs(reply[1:])]
    return packform.raw_map({"jobs": packform.raw_array(jobs), "next_ms": packform.pack(reply[0])})


def _finished(reply: list[Any]) -> bytes:
    """For each outcome its state, and the ids of jobs that followed; what was picked behind them begins with a
    number."""
    count = next((at for at, one in enumerate(reply) if isinstance(one, int)), len(reply))
    answers = [one if isinstance(one, list) else [one] for one in reply[:count]]
    body = packform.pack(
        {"states": [_text(one[0]) for one in answers], "job_ids": [_text(one[1::2]) for one in answers]}
    )
    return packform.extend_map(body, packform.members(_picked(reply[count:]))) if count < len(reply) else body


def _result(reply: list[bytes]) -> bytes:
    state, *result = reply
    if not result:
        why = "keeps no result" if state == b"done" else "has no result"
        raise HttpError(409, "CONFLICT", f"the job is {state.decode()} and {why}")
    return result[0]


_OWN: Mapping[str, Callable[[Any], bytes]] = {
    "enqueued": _enqueued, "picked": _picked, "finished": _finished, "result": _result,
}  # fmt: skip


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError(404, "NOTFOUND", f"no such job: {printable(job_id)}")
