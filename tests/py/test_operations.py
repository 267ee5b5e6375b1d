"""The table of operations is the measure: the HTTP API's description is compared with it in every respect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from http_support import JSON, MSGPACK, document
from jqmaster.wire.errors import STATUS
from jqmaster.wire.operation import Field, Operation
from jqmaster.wire.operations import OPERATIONS

METHODS = ("get", "post", "put", "patch", "delete")
RECORDS = "application/octet-stream"
DESCRIBED = {
    (method.upper(), path): (item, item[method])
    for path, item in document()["paths"].items()
    for method in METHODS
    if method in item
}
ALL = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)

# Codes that are HTTP's own, beside those of the scripts.
OWN_STATUS = {"TIMEOUT": 408, "NOTACCEPTABLE": 406, "UNSUPPORTED": 501}
JSON_TYPES = {
    "text": "string", "cursor": "string", "states": "string", "integer": "integer", "moment": "integer",
    "number": "number", "list": "array", "map": "object",
}  # fmt: skip


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """What `node` refers to, with what it says itself on top of that."""
    if "$ref" not in node:
        return node
    found: Any = document()
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return {**resolved(found), **{name: value for name, value in node.items() if name != "$ref"}}


def referred(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def properties(schema: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Those of a map, or of all that it may be, and those that are always there."""
    whole = resolved(schema)
    if "oneOf" in whole and "properties" not in whole:
        parts = [properties(one) for one in whole["oneOf"]]
        found = {name: value for part, _ in reversed(parts) for name, value in part.items()}
        return found, set.intersection(*(required for _, required in parts))
    # YAML takes a plain `on` for true.
    named = {"on" if name is True else name: value for name, value in whole.get("properties", {}).items()}
    return named, set(whole.get("required", ()))


def least_and_most(schema: dict[str, Any]) -> tuple[Any, Any]:
    return tuple(
        next(
            (schema[f"{end}{what}"] for what in ("imum", "Length", "Items", "Properties") if f"{end}{what}" in schema),
            None,
        )
        for end in ("min", "max")
    )  # type: ignore[return-value]


def hold_field(field: Field, schema: dict[str, Any], required: bool, told: str | None) -> None:
    """Fail unless the description says of a field what the table does."""
    whole, kind = resolved(schema), field.type
    at = f"{field.place} {field.name}"
    assert required == field.required, at
    if kind.schema:
        assert referred(schema) == kind.schema, at
    if kind.kind == "flag":
        assert (referred(schema), whole["type"]) == (
            ("Flag", "string") if field.place == "query" else ("", "boolean")
        ), at
    elif kind.kind not in ("value", "raw") and "type" in whole:
        assert whole["type"] == JSON_TYPES[kind.kind], at
        assert least_and_most(whole) == (kind.least, kind.most), at
        if kind.kind == "text":
            assert tuple(whole.get("enum", ())) == kind.choices, at
    else:
        assert kind.schema or kind.kind == "raw", f"{at}: a type that nothing describes"
    if kind.kind != "value" and not (kind.schema and field.default is None):
        assert whole.get("default") == field.default, at
    if told is not None:
        assert field.meaning and told.startswith(field.meaning), at


def parameters(item: dict[str, Any], described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from map(resolved, [*item.get("parameters", []), *described.get("parameters", [])])


def test_the_table_has_what_is_described() -> None:
    assert {(one.method, one.path) for one in OPERATIONS.values()} == set(DESCRIBED)


def statuses(one: Operation) -> set[int]:
    if one.path.endswith(".yaml"):
        return {200, 500}
    found = {*one.reply.statuses, 500, 503, *((OWN_STATUS | STATUS)[code] for code in one.errors)}
    if not one.reply.media:
        found.add(406)
    return found | ({408, 413, 415} if one.takes_body or one.script == "import" else set())


@ALL
def test_an_operation_is_described_as_it_is(operation: Operation) -> None:
    _, described = DESCRIBED[operation.method, operation.path]
    assert described["summary"] == operation.summary
    assert set(map(int, described["responses"])) == statuses(operation)


@ALL
def test_its_parameters_are_described_as_they_are(operation: Operation) -> None:
    item, described = DESCRIBED[operation.method, operation.path]
    told = {(one["in"], one["name"]): one for one in parameters(item, described)}
    fields = {(one.place, one.name): one for one in operation.fields if one.place != "body"}
    assert set(told) == set(fields)
    for key, one in told.items():
        description = None if fields[key].place == "path" else one.get("description")
        hold_field(fields[key], one["schema"], one.get("required", False), description)
        assert one.get("allowEmptyValue", False) == (fields[key].type.kind == "flag"), key


@ALL
def test_its_body_is_described_as_it_is(operation: Operation) -> None:
    _, described = DESCRIBED[operation.method, operation.path]
    if operation.script == "import":
        assert set(described["requestBody"]["content"]) == {RECORDS}
        return
    assert ("requestBody" in described) == operation.takes_body
    if not operation.takes_body:
        return
    body = described["requestBody"]
    assert set(body["content"]) == {MSGPACK, JSON}
    assert body.get("required", False) == (not operation.may_be_empty)
    schema = body["content"][MSGPACK]["schema"]
    if operation.body:
        alternatives = [schema, *schema.get("oneOf", [])]
        assert operation.body in {" ".join(filter(None, map(referred, alternatives))), referred(schema)}
        return
    told, required = properties(schema)
    fields = {one.name: one for one in operation.at("body")}
    assert set(told) == set(fields)
    for name, one in told.items():
        hold_field(fields[name], one, name in required, None if "$ref" in one else one.get("description"))


@ALL
def test_its_answer_is_described_as_it_is(operation: Operation) -> None:
    _, described = DESCRIBED[operation.method, operation.path]
    reply = operation.reply
    answer = resolved(described["responses"][str(min(reply.statuses, key=lambda status: status == 204))])
    if reply.shape == "nothing":
        assert "content" not in answer
        return
    if reply.media:
        assert any(kind.startswith(reply.media) for kind in answer["content"])
        return
    assert set(answer["content"]) == {MSGPACK, JSON}
    told, _ = properties(answer["content"][MSGPACK]["schema"])
    if reply.shape == "states":
        assert set(told) - {"cursor", "changed"} == set(reply.names)
    elif reply.names:
        assert set(told) == set(reply.names)
    else:
        assert told or reply.shape == "own"
