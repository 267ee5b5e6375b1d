"""Writes what is made of the table of operations: their reference in docs/clients.md; and what is not there yet: each
operation in openapi/master.yaml, which is compared with the table by tests, and may be refined by hand.
Into both documents the version, which stands in the package alone. And typed signatures (stubs.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import quick_yaml
import stubs
import yaml
from fields import Plain

from jqmaster import __version__
from jqmaster.engine.packform import MSGPACK
from jqmaster.manifest.operation import Field, Operation, Reply
from jqmaster.manifest.operations import OPERATIONS
from jqmaster.server.http_error import STATUS
from jqmaster.server.message import JSON

ROOT = Path(__file__).resolve().parents[1]
PAGE, DOCUMENT = ROOT / "docs" / "clients.md", ROOT / "openapi" / "master.yaml"
DOCUMENTS = sorted((ROOT / "openapi").glob("*.yaml"))
BEGIN, END = "<!-- operations: written by make generate -->\n", "<!-- end of operations -->\n"
_HEAD = ("operation", "request", "script", "roles", "answer", "errors")

# Codes that are HTTP's own, beside those of the scripts.
_OWN_STATUS = {"TIMEOUT": 408, "UNAUTHORIZED": 401, "NOTACCEPTABLE": 406}
_FAILURES = {
    400: "Invalid", 401: "Unauthorized", 404: "NotFound", 406: "NotAcceptable", 408: "Slow", 409: "NotPossible",
    413: "TooLarge", 415: "Unsupported", 429: "Full", 500: "Internal", 503: "Unavailable",
}  # fmt: skip
# For each kind its JSON type, and what its least and most are called.
JSON_TYPES = {
    "text": ("string", "Length"), "zone": ("string", "Length"), "cursor": ("string", "Length"),
    "states": ("string", "Length"), "matcher": ("string", "Length"), "integer": ("integer", "imum"),
    "moment": ("integer", "imum"), "number": ("number", "imum"),
    "flag": ("boolean", ""), "list": ("array", "Items"), "map": ("object", "Properties"),
}  # fmt: skip


def with_reference(page: str) -> str:
    """A page with the section between the markers made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, OPERATIONS.values())]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{before}{BEGIN}\n{table}\n{END}{behind}"


def _row(one: Operation) -> tuple[str, ...]:
    return (
        one.name,
        f"`{one.method} {one.path}`",
        f"`{one.script}`" if one.script else "",
        ", ".join(one.roles),
        _answer(one.reply),
        " ".join(one.errors),
    )


def _answer(reply: Reply) -> str:
    if reply.media:
        return f"`{reply.media}`"
    if reply.names:
        return f"`{{{', '.join(reply.names)}}}`"
    return "" if reply.shape in ("nothing", "own") else "a document"


def statuses(one: Operation) -> set[int]:
    """All that an operation may answer with."""
    if one.path.endswith(".yaml"):
        return {200, 500}
    found = {*one.reply.statuses, 500, 503, *((_OWN_STATUS | STATUS)[code] for code in one.errors)}
    if not one.reply.media:
        found.add(406)
    return found | ({408, 413, 415} if one.takes_body or one.script == "import" else set())


def description(one: Operation) -> dict[str, Any]:
    """An operation as an OpenAPI document has it."""
    first, *rest = re.split(r"[.]", one.name)
    found: dict[str, Any] = {
        "operationId": first + "".join(part.capitalize() for part in rest),
        "tags": ["operation"],
        "summary": one.summary,
    }
    parameters = [_parameter(field) for field in one.fields if field.place != "body"]
    if parameters:
        found["parameters"] = parameters
    if one.takes_body:
        required = {} if one.may_be_empty else {"required": True}
        found["requestBody"] = {**required, "content": _content(_body(one))}
    responses: dict[str, Any] = {str(status): {"description": "Done."} for status in one.reply.statuses}
    if one.reply.shape != "nothing":
        responses[str(one.reply.statuses[0])]["content"] = _content(_answer_schema(one.reply))
    for status in sorted(statuses(one) - set(one.reply.statuses)):
        responses[str(status)] = {"$ref": f"#/components/responses/{_FAILURES[status]}"}
    return {**found, "responses": responses}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"schema": schema} for kind in (MSGPACK, JSON)}


def _map(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    needed = {"required": required} if required else {}
    return {"type": "object", **needed, "additionalProperties": False, "properties": properties}


def _body(one: Operation) -> dict[str, Any]:
    fields = one.at("body")
    return _map({field.name: _schema(field, told=True) for field in fields}, [f.name for f in fields if f.required])


def _answer_schema(reply: Reply) -> dict[str, Any]:
    kinds: dict[str, Any] = {name: {} for name in reply.names}
    if reply.shape in ("page", "list"):
        kinds[reply.names[0]] = {"type": "array", "items": {"type": "object"}}
    if "cursor" in kinds:
        kinds["cursor"] = {"$ref": "#/components/schemas/Cursor"}
    if reply.shape == "states":
        return {"$ref": "#/components/schemas/Answers"}
    return _map(kinds, list(reply.names)) if reply.names else {"type": "object"}


def _parameter(field: Field) -> dict[str, Any]:
    told = {"description": field.meaning} if field.meaning else {}
    needed = {"required": True} if field.required else {}
    empty = {"allowEmptyValue": True} if field.type.kind == "flag" else {}
    return {"name": field.name, "in": field.place, **needed, **told, "schema": _schema(field), **empty}


def _schema(field: Field, *, told: bool = False) -> dict[str, Any]:
    kind = field.type
    schema = "Flag" if kind.kind == "flag" and field.place == "query" else kind.schema
    if schema:
        found: dict[str, Any] = {"$ref": f"#/components/schemas/{schema}"}
    elif kind.kind not in JSON_TYPES:
        found = {}
    else:
        name, ends = JSON_TYPES[kind.kind]
        found = {"type": name}
        found |= {f"min{ends}": kind.least} if kind.least is not None else {}
        found |= {f"max{ends}": kind.most} if kind.most is not None else {}
        found |= {"enum": list(kind.choices)} if kind.choices else {}
    if field.default is not None and kind.kind != "value":
        found["default"] = field.default
    if told and field.meaning:
        found["description"] = field.meaning
    return found


def with_operations(document: str) -> str:
    """A document with what it lacks, each behind the others of its path or of all paths."""
    described = quick_yaml.read(document)["paths"]
    for one in OPERATIONS.values():
        if one.method.lower() in (described.get(one.path) or {}):
            continue
        text = yaml.dump({one.method.lower(): description(one)}, Dumper=Plain, sort_keys=False, width=118)
        text = "".join(f"    {line}\n" for line in text.splitlines())
        path = re.search(rf"^  {re.escape(one.path)}:\n(?:    .*\n)*", document, re.M)
        at = path.end() if path else document.index("components:\n")
        document = document[:at] + ("" if path else f"  {one.path}:\n") + text + document[at:]
    return document


def with_version(document: str) -> str:
    """An OpenAPI document with the package's version."""
    return re.sub(r"^  version: .*$", f"  version: {__version__}", document, count=1, flags=re.MULTILINE)


def main() -> None:
    PAGE.write_text(with_reference(PAGE.read_text()))
    for path, text in stubs.files():
        path.write_text(text)
    DOCUMENT.write_text(with_operations(DOCUMENT.read_text()))
    for document in DOCUMENTS:
        document.write_text(with_version(document.read_text()))


if __name__ == "__main__":
    main()
