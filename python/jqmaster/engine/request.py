"""From a call of a script to a request to a master, and from its answer to a reply: by the table of operations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.calls import ABSENT, Argument, Spec, given, pack
from jqmaster.engine.replies import Job, Note, job_of
from jqmaster.errors import (
    Conflict,
    Expired,
    Forbidden,
    Full,
    Internal,
    Invalid,
    JQError,
    Lost,
    NotDurable,
    NotFound,
    TooFast,
    Unauthorized,
    Unavailable,
    version_problem,
)
from jqmaster.manifest.operation import Field, Operation, segment
from jqmaster.manifest.operations import OPERATIONS

ONCE = ("register", "kick", "retry", "discard", "cancel", "grant")  # a second time does or says something else
_REFUSALS: dict[str, type[JQError]] = {
    kind.code: kind for kind in (Invalid, NotFound, Conflict, Expired, Lost, Full, Unauthorized, Forbidden, TooFast)
}
_BY_SCRIPT: dict[str, list[Operation]] = {}
for _one in OPERATIONS.values():
    if _one.reply.shape != "own":
        _BY_SCRIPT.setdefault(_one.script, []).append(_one)
for _several in _BY_SCRIPT.values():
    _several.sort(key=lambda one: one.reply.shape in ("first", "state", "nothing"))  # many before one
PAGES = frozenset(name for name, several in _BY_SCRIPT.items() if any(one.reply.shape == "first" for one in several))


class HttpRequest(NamedTuple):
    """What a call comes to."""

    operation: Operation
    path: str  # with its query
    body: bytes
    headers: dict[str, str]


def request_of(script: str, arguments: Sequence[Argument]) -> HttpRequest | None:
    """The operation that has a place for all that the script is told; None when there is none."""
    for operation in _BY_SCRIPT.get(script, ()):
        spec, values = _read(operation, arguments)
        placed: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "body": {}}
        for field in operation.fields:
            value = values.pop(0) if field.type.kind == "value" and values else _taken(spec, field.to)
            if value is not ABSENT and value != b"":
                placed[field.place][field.name] = _shown(field, value)
        if {**spec} == dict(operation.fixed) and all(field.name in placed["path"] for field in operation.at("path")):
            query = urlencode(placed["query"])
            path = _filled(operation.path, placed["path"]) + (f"?{query}" if query else "")
            body = packform.raw_map(placed["body"]) if operation.takes_body else b""
            return HttpRequest(operation, path, body, placed["header"])
    return None


def no_request(script: str, arguments: Sequence[Argument]) -> JQError:
    """What to raise for a call that no request can make."""
    try:
        told = str(msgpack.unpackb(arguments[0], strict_map_key=False))[:200]
    except (IndexError, TypeError, ValueError, msgpack.UnpackException):
        told = "it"
    kind = Invalid if script in _BY_SCRIPT else Unavailable
    return kind(f"{script}: a master has no request for {told}")


def apart(script: str, arguments: Sequence[Argument]) -> list[list[Argument]] | None:
    """The calls for one id each that a call for many comes to, where only one can be asked for at a time."""
    operations = _BY_SCRIPT.get(script)
    spec = _read(operations[0], arguments)[0] if operations else None
    for name in ("ids", "names"):
        listed = spec.get(name) if isinstance(spec, dict) else None
        if spec and isinstance(listed, list) and len(listed) != 1:
            return [[pack({**spec, name: [one]})] for one in listed]
    return None


def path_of(operation: str, **segments: str) -> str:
    """The path of an operation, by its name in the table."""
    return _filled(OPERATIONS[operation].path, segments)


def _read(operation: Operation, arguments: Sequence[Argument]) -> tuple[dict[str, Any], list[Any]]:
    if operation.bare:
        return {"id": arguments[0]}, []
    spec: dict[str, Any] = msgpack.unpackb(arguments[0], strict_map_key=False) if arguments else {}
    return spec, list(arguments[1:])


def _taken(spec: dict[str, Any], to: str) -> Any:
    """Take out of a spec what stands at a place such as `where.queue` or `ids[0]`."""
    name, _, rest = to.partition(".")
    if rest:
        inner = spec.get(name)
        if not isinstance(inner, dict):
            return ABSENT
        value = _taken(inner, rest)
        if not inner:
            del spec[name]
        return value
    if to.endswith("[0]"):
        listed = spec.get(to[:-3])
        return spec.pop(to[:-3])[0] if isinstance(listed, list) and len(listed) == 1 else ABSENT
    return spec.pop(to, ABSENT) if to else ABSENT


def _shown(field: Field, value: Any) -> Any:
    """As it goes into its part of the request."""
    if field.place == "body":
        return value if field.type.kind == "value" else packform.pack(value)
    if field.type.kind == "flag":
        return "1" if value else "0"
    if field.type.kind == "matcher":
        return json.dumps(value)
    return ",".join(value) if isinstance(value, list) else value


def _filled(path: str, segments: Mapping[str, Any]) -> str:
    return path.format_map({name: segment(str(value)) for name, value in segments.items()})


# -- bodies ----------------------------------------------------------------------------------------


def with_argument(spec: Spec, argument: bytes, path: str = "") -> bytes:
    """A job's spec with its argument, which stays as it is packed."""
    return packform.extend_map(pack(spec, path), {"argument": argument})


def outcome_map(spec: Spec, blob: bytes, follow: Sequence[tuple[Spec, bytes]] = ()) -> bytes:
    """An outcome as `POST /done` and an answer to a delivery have it."""
    parts = {"result" if spec["type"] == "success" else "error": blob}
    if follow:
        parts["enqueue"] = packform.raw_array([with_argument(*one) for one in follow])
    return packform.extend_map(pack(spec), parts)


def lease(held: tuple[str, str], note: Note | None) -> bytes:
    """One job of a heartbeat."""
    if note is None:
        return packform.pack(held)
    said = packform.pack(given(progress=note.progress, message=note.message))
    if note.argument is not None:
        said = packform.extend_map(said, {"argument": note.argument})
    return packform.raw_array([packform.pack(held[0]), packform.pack(held[1]), said])


# -- from an answer to a reply ---------------------------------------------------------------------


def reply_of(operation: Operation, content: bytes) -> Any:
    """What the script has answered."""
    shape, names = operation.reply.shape, operation.reply.names
    if shape == "document":
        return content
    if shape == "first":
        return [b"", content]
    if shape in ("page", "list"):
        found = packform.members(content)
        documents: list[Any] = packform.items(found[names[0]])
        if columns := operation.reply.columns:
            documents = [[row[name] for name in columns] for row in map(value_of, documents)]
        told = [msgpack.unpackb(found[name]) for name in ("cursor", "looked") if name in found]
        return documents if shape == "list" else [*told, *documents]
    value = value_of(content)
    if shape == "state":
        return [value["status"]] if operation.fields[0].to == "ids[0]" else value["status"]
    if shape == "states":
        return value["jobs"] if "jobs" in value else [value["cursor"], value["changed"]]
    if shape == "values":
        return value[names[0]] if len(names) == 1 else [value[name] for name in names]
    return None


def reply_to_repeat(operation: Operation) -> Any:
    """What to say when a request was sent again, and what it takes away is not there: the first one did it."""
    return 0 if operation.reply.shape == "values" else None


def checked(status: int, content: bytes) -> bytes:
    """The answer's body. Raises JQError for an error."""
    if status < 400:
        return content
    try:
        refusal = msgpack.unpackb(content)["error"]
        code, message, field = refusal["code"], refusal["message"], refusal.get("field")
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        code, message, field = "", f"the master answered {status}", None
    if code == NotDurable.code:
        raise NotDurable(message, refusal["job_ids"])
    if code == "VERSION":
        raise version_problem(message)
    if status in (502, 503, 504):
        raise Unavailable(message)
    kind = _REFUSALS.get(code, Invalid if status < 500 else Internal)
    raise kind(message.removeprefix(f"{field}: "), field)


def is_one_value(content: bytes) -> bool:
    """Whether it is MessagePack, whole."""
    unpacker = packform.reader(content)
    try:
        unpacker.skip()
    except msgpack.StackError:
        return True  # only deeper than our reader goes
    except (ValueError, msgpack.UnpackException):
        return False
    return bool(unpacker.tell() == len(content))


def value_of(content: bytes) -> Any:
    """An answer's body as a value."""
    # Arguments may hold text that is not UTF-8, and one such job must not hide a whole listing.
    errors = "surrogateescape"
    return msgpack.unpackb(content, strict_map_key=False, unicode_errors=errors) if content else {}


def jobs_of(found: Mapping[str, Any]) -> list[Job]:
    """The jobs of an answer that `read_map` has read."""
    return [job_of(fields, fields.pop("argument")) for fields in found.get("jobs", [])]


def read_map(content: bytes) -> dict[str, Any]:
    """Read a MessagePack map of the master's; every `argument` in it stays bytes. Raises what msgpack raises."""
    unpacker = packform.reader(content, strict_map_key=False)

    def one_map() -> dict[str, Any]:
        result: dict[str, Any] = {}
        for _ in range(unpacker.read_map_header()):
            key = unpacker.unpack()
            if key == "argument":
                result[key] = packform.cut(unpacker, content)
            elif key == "jobs":
                result[key] = [one_map() for _ in range(unpacker.read_array_header())]
            else:
                result[key] = unpacker.unpack()
        return result

    return one_map()
