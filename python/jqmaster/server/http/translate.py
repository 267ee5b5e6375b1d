"""Requests into arguments of scripts, and their replies into answers, as the head of the script says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Raw

from jqmaster.engine import calling, tracing
from jqmaster.engine.packform import FALSE, NIL
from jqmaster.engine.replies import pairs
from jqmaster.manifest import contract
from jqmaster.manifest.contract import CONDITIONS, Argument, Operation, Route, Type
from jqmaster.server.http.calls import MOST_WAIT_S, run
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds, unknown_field
from jqmaster.server.reader import extended, map_with, members, parts, printable, unpacked

_INTEGER = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_PLAIN: Mapping[bytes, Any] = {NIL: None, FALSE: False}
"""What is as good as absent where a call has several replies."""
_QUERIED = {"flag": bool, "integer": _INTEGER, "ms": _INTEGER, "moment_ms": _INTEGER}
"""What stands in a query as text; all else is text."""


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
        queried, body = operation.stand(route)
        self.query = {name: (argument, outer) for name, argument, outer in in_query(queried)}
        self._headers = {argument.name: argument.header for argument in body if argument.header}
        self._body = {argument.name for argument in (*operation.arguments, *route.parameters)} - {route.place}
        self._behind = operation.behind
        self._may_wait = bool(route.parameters)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        given = self._read(request)
        wait_s = seconds(unpacked(given.pop("timeout", None)) or 0, "timeout", MOST_WAIT_S) if self._may_wait else 0.0
        # Conditions stand by themselves in a query, and so do options in a body.
        request.rename = lambda path: path.removeprefix("where." if self.query else "options.")
        arguments = cast(list[bytes], calling.packed(self.operation, given, map_with))
        return answer(self.operation.reply(given), await run(master, request, self.operation, arguments, wait_s))

    def _read(self, request: Request) -> dict[str, Any]:
        """The arguments by name: those of the path and the query, and those of the body, each packed; of lists behind
        the spec the parts. Raises 400."""
        given: dict[str, Any] = {}
        for name, text in request.query.items():
            argument, outer = self.query[name]
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


def answer(declared: contract.Reply, reply: Any) -> Reply:
    """The answer that a script's reply is."""
    of = declared.of
    if of.name == "result":
        return Reply(200, _result(reply))
    if of.name == "nothing":
        return Reply(204)
    if own := _OWN.get(of.name):
        shown = own(reply)
    elif of.name == "states":
        shown = {declared.name: _text(reply)}
    elif of.kind in ("list", "page"):
        assert of.of is not None
        cursor, *entries = reply if of.kind == "page" else (None, *reply)
        looked = {}
        if of.of.kind == "document" and entries and isinstance(entries[0], int):
            looked = {"looked": entries.pop(0)}
        page = {} if cursor is None else {"cursor": cursor.decode()}
        shown = {declared.name: [_shown(of.of, entry) for entry in entries], **page, **looked}
    else:
        shown = _shown(of, reply)
    return Reply(200, msgspec.msgpack.encode(shown))


def _shown(of: Type, value: Any) -> Any:
    """A reply, or an entry of a list. Documents are packed already."""
    if of.kind == "document":
        return None if value is None else Raw(value)
    if of.kind != "members":
        return bool(value) if of.name == "flag" else _text(value)
    values = value if len(of.members) > 1 else [value]
    return {name: _shown(inner, one) for (name, inner), one in zip(of.members, values, strict=True)}


def _text(value: Any) -> Any:
    """Text for bytes, also in a list."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def _enqueued(reply: list[Any]) -> dict[str, Any]:
    return {"job_ids": _text(reply[::2]), "created": [bool(one) for one in reply[1::2]]}


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


_OWN: Mapping[str, Callable[[list[Any]], dict[str, Any]]] = {
    "enqueued": _enqueued, "picked": _picked, "finished": _finished,
}  # fmt: skip


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError("NOTFOUND", f"no such job: {printable(job_id)}")
