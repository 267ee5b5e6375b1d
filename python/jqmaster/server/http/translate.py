"""Requests into specs of scripts, and their replies into answers, as the table of operations says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from jqmaster.engine import packform, zones
from jqmaster.errors import JQError
from jqmaster.manifest.operation import Field, Operation
from jqmaster.server.http_error import HttpError, from_engine, invalid
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, flag, refuse_unknown, seconds
from jqmaster.server.reader import Reader, pack_spec, printable

_OF_A_JOB = "/job/{id}"
_ID = re.compile(r"id|ids\[0\]|jobs\[0\]\.id")
_TRUTH = frozenset(("more",))
_CONFLICTS = {
    "change": "the job runs or has ended; of such only the tags can be changed",
    "kick": "the job does not run",
    "retry": "the job is neither error, cancelled, skipped nor retrying, or its unique key is another's by now",
    "discard": "the job is running",
}
# Of a worker that was quiet long polls got nothing, and nobody knows that they wait.
_LOOK_AGAIN = "worker.resume"
# After these, workers that are pushed to may have room.
_MAKE_ROOM = frozenset((
    "kick", "kick.one", "kick.queue", "retry", "discard", "cancel", "worker.quiet", "worker.stop", _LOOK_AGAIN,
))  # fmt: skip


class Translation:
    """One operation, both ways. It is the operation's handler where none is written by hand."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._query = operation.at("query")
        self._body = {field.name: field for field in operation.at("body")}
        self._unread = frozenset(name for name, field in self._body.items() if field.type.kind in ("value", "raw"))
        self._has_zone = any(field.type.kind == "zone" for field in self._body.values())
        self._is_of_a_job = operation.path.startswith(_OF_A_JOB)
        self._names = list(_names(operation.fields))
        [self._of] = [field.name for field in operation.at("path")] or [""]
        self._timeout = next((field for field in operation.fields if field.name == "timeout"), None)

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        operation = self.operation
        spec, values = self.read(request)
        args = [request.params[self._of].encode()] if operation.bare else [spec, *values]
        try:
            reply = await master.engine.raw(operation.script, *args)
        except JQError as error:
            self._refuse_id(error, request)
            raise
        if operation.name == _LOOK_AGAIN:
            master.waiting.look_again(request.params["id"])
        if operation.name in _MAKE_ROOM:
            master.dispatch.poke()
        if operation.name == "bulk" and master.bulks is not None:
            master.bulks.poke()
        return self._answer(reply, request)

    def read(self, request: Request) -> tuple[bytes, list[bytes]]:
        """The script's spec, and the values behind it. Raises 400 for what the operation does not know."""
        request.rename = self._rename
        spec: dict[str, Any] = dict(self.operation.fixed)
        if self.operation.says_actor:
            spec["actor"] = request.who.name
        for field in self.operation.at("path"):
            _put(spec, field.to, request.params[field.name])
        for field in self._query:
            value = _value(field, request.arguments.get(field.name))
            if value is not None:
                _put(spec, field.to, value)
        body = self._read_body(request)
        values: list[bytes] = []
        raw: dict[str, bytes] = {}
        for field in self._body.values():
            if field.type.kind == "value":
                if field.required and field.name not in body:
                    raise invalid(field.name, f"missing; expected {field.meaning}")
                values.append(body.get(field.name, field.default))
            elif field.name in body and field.type.kind == "raw":
                raw[field.to] = body[field.name]
            elif field.name in body:
                _put(spec, field.to, body[field.name])
        if self._has_zone:
            spec = zones.with_rule(spec)
        return packform.extend_map(pack_spec(spec), raw), values

    def wait_s(self, given: Mapping[str, Any]) -> float:
        """For how long this may take, as its field `timeout` says. Raises 400."""
        assert self._timeout is not None
        value = given.get("timeout", self._timeout.default)
        return seconds(value, "timeout", self._timeout.type.most or 0)

    def _read_body(self, request: Request) -> dict[str, Any]:
        if not self._body or (not request.body and self.operation.may_be_empty):
            return {}
        body = Reader(request.body).map("", self._unread)
        refuse_unknown(body, self._body)
        return body

    def _rename(self, path: str) -> str:
        # Asked about one job, a script that takes many still counts them.
        if path.startswith("jobs[0]") and self._is_of_a_job:
            path = path[len("jobs[0]") :].removeprefix(".") or "id"
        for to, name, is_whole in self._names:
            if path == to or path.startswith((f"{to}.", f"{to}[")):
                return name if is_whole else name + path[len(to) :]
        return path

    def _refuse_id(self, error: JQError, request: Request) -> None:
        """An id that cannot be one is an unknown job, not a bad request."""
        if self._is_of_a_job and (self.operation.bare or (error.path and _ID.fullmatch(error.path))):
            if error.code in ("INVALID", "NOTFOUND"):
                raise no_such_job(request.params["id"]) from None
            raise from_engine(error, None) from None

    def _answer(self, reply: Any, request: Request) -> Reply:
        shape, names = self.operation.reply.shape, self.operation.reply.names
        match shape:
            case "nothing":
                return Reply(204)
            case "document":
                return Reply(200, reply)
            case "first":
                return self._first(reply, request)
            case "page":
                cursor, *documents = reply
                looked = (
                    {"looked": packform.pack(documents.pop(0))} if documents and isinstance(documents[0], int) else {}
                )
                pairs = {names[0]: self._listed(documents), "cursor": packform.pack(cursor.decode()), **looked}
                return Reply(200, packform.raw_map(pairs))
            case "list":
                return Reply(200, packform.raw_map({names[0]: self._listed(reply)}))
            case "state":
                return self._state(reply[0] if isinstance(reply, list) else reply, request)
            case "states" if reply and isinstance(reply[-1], int):
                return Reply(200, packform.pack({"cursor": reply[0].decode(), "changed": reply[1]}))
            case "states":
                return Reply(200, packform.pack({names[0]: [state.decode("ascii") for state in reply]}))
            case "values":
                parts = reply if isinstance(reply, list) else [reply]
                told = {
                    name: bool(value) if name in _TRUTH else value for name, value in zip(names, parts, strict=True)
                }
                return Reply(200, packform.pack(told))
        raise AssertionError(shape)

    def _listed(self, documents: Iterable[Any]) -> bytes:
        columns = self.operation.reply.columns
        if columns:
            documents = [
                packform.pack({name: _text(value) for name, value in zip(columns, row, strict=True)})
                for row in documents
            ]
        return packform.raw_array(list(documents))

    def _first(self, reply: list[Any], request: Request) -> Reply:
        _cursor, *documents = reply
        if not documents:
            what, name = self.operation.path.split("/")[1], request.params[self._of]
            message = f"{self._of}: no such {what}: {printable(name, 255)}"
            raise HttpError(404, "NOTFOUND", message, self._of)
        return Reply(200, documents[0])

    def _state(self, state: bytes | None, request: Request) -> Reply:
        if state is None or state == b"NOTFOUND":
            raise no_such_job(request.params["id"])
        if state == b"CONFLICT":
            raise HttpError(409, "CONFLICT", _CONFLICTS[self.operation.script])
        return Reply(200, packform.pack({"status": state.decode("ascii")}))


def _names(fields: Iterable[Field]) -> Iterable[tuple[str, str, bool]]:
    """What a script's error may name, and what the request calls it; whether what is behind it is left out."""
    for field in fields:
        if not field.to:
            continue
        # In a query a list is one text; in a path there is one name of what the script has a list of.
        yield field.to, field.name, field.place != "body" and field.type.kind != "matcher"
        if field.to.endswith("[0]"):
            yield field.to.removesuffix("[0]"), field.name, True
        if field.type.kind == "raw":
            # Nothing else can spoil the spec as such: it is binary data there, which no spec may hold.
            yield "spec", field.name, True


def _put(spec: dict[str, Any], to: str, value: Any) -> None:
    """Put a field's value where it belongs."""
    outer, _, name = to.rpartition(".")
    if outer:
        spec = spec.setdefault(outer, {})
    if name.endswith("[0]"):
        spec[name.removesuffix("[0]")] = [value]
    elif name:
        spec[name] = value


def _value(field: Field, text: str | None) -> Any:
    """What a parameter of the query says; None where the script knows best. Raises 400."""
    if text is None:
        # Defaults that are no text are the script's own.
        text = field.default if isinstance(field.default, str) else None
    if text is None:
        return None
    match field.type.kind:
        case "cursor":
            return text or None
        case "flag":
            return flag(text, field.name)
        case "states":
            return text.split(",") if "," in text else text
        case "moment":
            if not re.fullmatch(r"[0-9]{1,15}", text):
                raise _unexpected(field, f"milliseconds{' since 1970' if field.type.schema else ''}", text)
            return int(text)
        case "matcher":
            return _matcher(field, text)
        case "integer":
            if not re.fullmatch(r"[0-9]{1,6}", text):
                raise _unexpected(field, f"an integer from {field.type.least} to {field.type.most}", text)
            return int(text)
    if field.type.choices and text not in field.type.choices:
        raise _unexpected(field, f"one of {', '.join(field.type.choices)}", text)
    return text


def _matcher(field: Field, text: str) -> Any:
    try:
        packed = to_msgpack(text.encode(errors="surrogateescape"))
    except HttpError:
        raise _unexpected(field, "a map of conditions as JSON", text) from None
    return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogateescape")


def _unexpected(field: Field, expected: str, text: str) -> HttpError:
    return invalid(field.name, f"expected {expected}, got {printable(text, 40)!r}")


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def no_such_job(job_id: str) -> HttpError:
    """404 for a job."""
    return HttpError(404, "NOTFOUND", f"no such job: {printable(job_id)}")
