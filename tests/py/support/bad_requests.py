"""A case of bad input as requests to a master: wherever the table of operations has a place for what is wrong."""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import msgpack

from jqmaster.engine import packform
from jqmaster.manifest.operations import OPERATIONS
from jqmaster.server.reader import check

NIL = b"\xc0"
FLAGS = ("", "0", "1", "true", "false", "yes", "no")
LONGEST = 5000  # text in a path, a query or a header
OF_A_JOB = "/job/{id}"


class Asked(NamedTuple):
    """A request, and the error that it must get: its code, and the field in the request's own terms."""

    method: str
    target: str
    body: bytes | None
    headers: dict[str, str]
    code: str
    field: str | None


def parts(raw: bytes) -> dict[str, bytes] | None:
    """The values of a packed map, unread; None for what is no map with text as keys, or has binary data. Of such a
    master names the field, a script the whole (``test_http_wire.py``)."""
    unpacker = msgpack.Unpacker(None, strict_map_key=False, max_buffer_size=max(1, len(raw)))
    unpacker.feed(raw)
    found: dict[str, bytes] = {}
    try:
        for _ in range(unpacker.read_map_header()):
            name, start = unpacker.unpack(), unpacker.tell()
            unpacker.skip()
            if not isinstance(name, str) or name in found or packform.kind_of(raw, start) in ("bin", "ext"):
                return None
            found[name] = raw[start : unpacker.tell()]
    except (ValueError, msgpack.UnpackException):
        return None
    return found if unpacker.tell() == len(raw) else None


def is_value(raw: bytes) -> bool:
    """Whether it is one value that a body may hold."""
    try:
        check(raw)
    except Exception:
        return False
    return True


def value_of(raw: bytes):
    return msgpack.unpackb(raw, strict_map_key=False, unicode_errors="surrogateescape")


def taken(spec, to):
    """Take out of a spec, a map of packed values, what stands at a place such as `where.queue` or `ids[0]`."""
    outer, _, name = to.partition(".")
    if name:
        inner = parts(spec.get(outer, NIL))
        if inner is None or name not in inner:
            return None
        value = inner.pop(name)
        spec[outer] = packform.raw_map(inner)
        if not inner:
            del spec[outer]
        return value
    if to.endswith("[0]"):
        listed = value_of(spec[to[:-3]]) if is_value(spec.get(to[:-3], b"")) else None
        is_one = isinstance(listed, list) and len(listed) == 1
        return msgpack.packb(spec.pop(to[:-3]) and listed[0], unicode_errors="surrogateescape") if is_one else None
    return spec.pop(to, None)


def text_of(field, raw):
    """As it stands in a path, a query or a header; None where text cannot say the same wrong thing."""
    value, kind = value_of(raw), field.type.kind
    if kind in ("integer", "moment"):
        return None if isinstance(value, str) and value.isdigit() else str(value)
    if kind == "flag":
        return None if str(value).lower() in FLAGS else str(value)
    if kind == "states" and isinstance(value, list) and len(value) > 1 and all(isinstance(one, str) for one in value):
        return ",".join(value)
    is_text = isinstance(value, str) and len(value) < LONGEST and (field.place != "header" or value.isprintable())
    if not is_text or (value == "" and (kind == "cursor" or field.place != "query")):
        return None
    return value


def quoted(text):
    return quote(text.encode("utf-8", "surrogateescape"), safe="")


def by_table(operation, case) -> Iterator[Asked]:
    """The request of an operation whose fields say where each part of the spec stands."""
    path = case.path or ""
    if operation.name == "change.one":
        path = path.removeprefix("jobs[0].").replace("jobs[0]", "id")
    spec = {"id": msgpack.packb(case.args[0])} if operation.bare and case.args else parts((*case.args, b"")[0])
    values = [value for value in case.args[1:] if value or operation.script != "change"]
    if spec is None or not all(map(is_value, values)) or (operation.script == "change" and len(case.args) != 2):
        return
    own = {field.to for field in operation.fields} | {field.name for field in operation.fields}
    is_nameless = path == "worker" and spec.get("worker", NIL) == NIL
    placed = {"path": {}, "query": {}, "header": {}, "body": {}}
    expected = path
    for field in operation.fields:
        if field.type.kind == "value":
            raw = values.pop(0) if values else None
            if raw is None and field.required:
                expected = field.name
        elif not field.to:
            continue
        elif field.place == "body":
            raw = taken(spec, field.to)
        else:
            rest = dict(spec)
            raw = taken(rest, field.to)
            raw = None if raw is None else text_of(field, raw)
            spec = spec if raw is None else rest
        if raw is not None:
            placed[field.place][field.name] = raw
            to = field.to or field.name
            if path == to or path.startswith((to + ".", to + "[")) or path == to.removesuffix("[0]"):
                expected = field.name + path[len(to) :] if field.place == "body" else field.name
        elif field.to == path and field.default is not None:
            return
    told = {name: spec.pop(name, NIL) for name in operation.fixed}
    fixed = {name: msgpack.packb(value) for name, value in operation.fixed.items()}
    unknown = dict(spec)
    is_whole = all(field.name in placed["path"] for field in operation.at("path"))
    knows = operation.takes_body or operation.at("query")
    is_sayable = unknown.keys() <= ({path} - own if knows and "unknown" in case.title else set())
    if values or not is_whole or not is_sayable or told != fixed or expected == "arguments":
        return
    placed["body" if operation.takes_body else "query"] |= (
        unknown if operation.takes_body else dict.fromkeys(unknown, "1")
    )
    target = operation.path.format_map({name: quoted(text) for name, text in placed["path"].items()})
    if placed["query"]:
        target += "?" + "&".join(f"{quoted(name)}={quoted(text)}" for name, text in placed["query"].items())
    body = packform.raw_map(placed["body"]) if operation.takes_body else None
    code, field = case.code, "worker-id" if is_nameless else expected
    if operation.path.startswith(OF_A_JOB) and case.path in ("id", "ids", "ids[0]", "jobs[0].id"):
        # An id that cannot be one is that of no job, and there is no other in the request to be told from.
        code, field = code if code == "CONFLICT" else "NOTFOUND", None
    yield Asked(operation.method, target, body, placed["header"], code, field or None)


def kind_of(raw):
    return packform.kind_of(raw) if raw else None


def with_argument(spec, blob):
    """A job or a change as a body has it; what is no map stays as it is."""
    return spec if kind_of(spec) != "map" or blob == b"" else packform.extend_map(spec, {"argument": blob})


def listed(args):
    """Jobs or changes and their arguments as items of a body's list; None for what a body cannot hold."""
    pairs = list(zip(args[::2], args[1::2], strict=False))
    is_sayable = all(is_value(spec) and (kind_of(spec) != "map" or parts(spec) is not None) for spec, _ in pairs)
    return [with_argument(*pair) for pair in pairs] if len(args) % 2 == 0 and is_sayable else None


def of_enqueue(case):
    odd = len(case.args) % 2
    options, items = parts(case.args[0]) if odd else {}, listed(case.args[odd:])
    if options is None or items is None or b"" in case.args:
        return
    body = packform.raw_map({**options, "jobs": packform.raw_array(items)})
    yield Asked("POST", "/jobs", body, {}, case.code, case.path.removeprefix("options.") or None)
    if not odd:
        yield Asked("POST", "/jobs", packform.raw_array(items), {}, case.code, case.path.removeprefix("jobs") or None)
    if len(items) == 1 and not odd:
        field = case.path.removeprefix("jobs[0]").removeprefix(".")
        yield Asked("POST", "/job", items[0], {}, case.code, field or None)


def of_change(case):
    items = listed(case.args)
    if items is not None:
        body = packform.raw_map({"jobs": packform.raw_array(items)})
        yield Asked("POST", "/jobs/change", body, {}, case.code, case.path)


def of_config(case):
    spec = parts(case.args[0]) if len(case.args) == 1 else None
    if spec and set(spec) == {"set"} and is_value(spec["set"]):
        field = case.path.removeprefix("set").removeprefix(".")
        yield Asked("PATCH", "/config", spec["set"], {}, case.code, field or None)


def outcome_of(args):
    """The first outcome with its blob and the jobs that follow, and what is behind it; None for the unsayable."""
    spec, blob, *rest = args
    found = parts(spec)
    if found is None or blob == b"":
        return None
    kind = "error" if found.get("type") == msgpack.packb("failure") else "result"
    if "enqueue" in found:
        count = value_of(found["enqueue"])
        jobs = listed(rest[: 2 * count]) if type(count) is int and 0 < 2 * count <= len(rest) else None
        if jobs is None or b"" in rest:
            return None
        found["enqueue"], rest = packform.raw_array(jobs), rest[2 * count :]
    return packform.raw_map({**found, kind: blob}), rest


def of_finish(case):
    spec, *rest = (*case.args, b"") if not case.args else case.args
    body, items = parts(spec), []
    if body is None or ".wait" in case.path:
        return
    while len(rest) > 1:
        item = outcome_of(rest)
        if item is None:
            return
        items.append(item[0])
        rest = item[1]
    if rest or not (items or "pick" in body):
        return
    field = "worker-id" if case.path == "worker" and body.get("worker", NIL) == NIL else case.path
    many = packform.raw_map({**body, "outcomes": packform.raw_array(items)})
    yield Asked("POST", "/done", many, {}, case.code, field or None)
    if len(items) == 1 and case.path.startswith("outcomes[0]."):
        one = packform.extend_map(items[0], {"worker": msgpack.packb("w")})
        yield Asked("POST", "/done", one, {}, case.code, case.path.removeprefix("outcomes[0]."))


BY_HAND = {"enqueue": of_enqueue, "change": of_change, "config.set": of_config, "finish": of_finish}


def asked(case) -> Iterator[Asked]:
    """All requests in which what is wrong can be said."""
    if case.script == "heartbeat" and case.path.endswith(".argument"):
        return  # checkpoints stand in a body themselves, not their places
    if case.script == "heartbeat" and case.title.endswith(("no jobs", "jobs nil")):
        return  # a worker without jobs stays alive all the same
    if case.script == "schedule" and case.path == "tz" and b"timezone" in case.args[0]:
        return  # a master finds the rule of a zone itself
    for operation in OPERATIONS.values():
        if operation.script == case.script and not operation.reply.media:
            of_it = BY_HAND.get(operation.name)
            if of_it is not None:
                yield from of_it(case)
            elif operation.name != "enqueue.many":
                for one in by_table(operation, case):
                    yield one
                    if operation.name == "pick":  # one that waits goes another way
                        yield one._replace(body=packform.extend_map(one.body, {"timeout": b"\x05"}))
