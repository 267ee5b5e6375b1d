"""The table of operations is the measure: each surface is compared with it, the API's description in every respect."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import operations_code
import pytest
import quick_yaml
import yaml

import jqmaster
from http_support import JSON, MSGPACK, document
from jqmaster.manifest.operation import NOTED, Field, Operation
from jqmaster.manifest.operations import OPERATIONS
from jqmaster.server.http.routes import BY_HAND

METHODS = ("get", "post", "put", "patch", "delete")
ROOT = Path(__file__).resolve().parents[3]
Described = dict[str, Any]
# Scripts that no request calls.
INSIDE = {
    "assign": "masters give jobs to the workers that they push to",
    "refuse": "masters give back what such a worker did not take",
    "tick": "whoever picks does what is due",
    "setup": "who connects does it",
    "audit": "a check of the indexes, for who can reach Redis",
    "head": "who works for several namespaces compares them by it",
    "touch": "masters note when keys were used",
}
RECORDS = "application/octet-stream"
GENERATE = runpy.run_path(str(ROOT / "tools/operations.py"))
DESCRIBED = {
    (method.upper(), path): (item, item[method])
    for path, item in document()["paths"].items()
    for method in METHODS
    if method in item
}


def cases() -> Iterator[Any]:
    """Each operation as it is described, and where the server needs no handler for it, as it would be written."""
    for name, one in OPERATIONS.items():
        yield pytest.param(one, *DESCRIBED[one.method, one.path], id=name)
        if not one.by_hand:
            written = quick_yaml.read(yaml.safe_dump(GENERATE["description"](one)))
            yield pytest.param(one, {}, written, id=f"{name}-written")


ALL = pytest.mark.parametrize(("operation", "item", "described"), list(cases()))


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
    if kind.choices:
        assert kind.choices == tuple(whole.get("enum", [whole.get("const")])), at
    if kind.kind == "flag":
        assert (referred(schema), whole["type"]) == (
            ("Flag", "string") if field.place == "query" else ("", "boolean")
        ), at
    elif kind.kind not in ("value", "raw") and "type" in whole:
        assert whole["type"] == GENERATE["JSON_TYPES"][kind.kind][0], at
        assert least_and_most(whole) == (kind.least, kind.most), at
    else:
        assert kind.schema or kind.kind == "raw", f"{at}: a type that nothing describes"
    if kind.kind != "value" and (field.default is not None or "$ref" not in schema):
        assert whole.get("default") == field.default, at
    if told is not None:
        assert field.meaning and told.startswith(field.meaning), at


def parameters(item: dict[str, Any], described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from map(resolved, [*item.get("parameters", []), *described.get("parameters", [])])


def test_the_table_has_what_is_described() -> None:
    assert {(one.method, one.path) for one in OPERATIONS.values()} == set(DESCRIBED)


@ALL
def test_an_operation_is_described_as_it_is(operation: Operation, item: Described, described: Described) -> None:
    assert described["summary"] == operation.summary
    assert set(map(int, described["responses"])) == GENERATE["statuses"](operation)


@ALL
def test_its_parameters_are_described_as_they_are(operation: Operation, item: Described, described: Described) -> None:
    told = {(one["in"], one["name"]): one for one in parameters(item, described)}
    fields = {(one.place, one.name): one for one in operation.fields if one.place != "body"}
    assert set(told) == set(fields)
    for key, one in told.items():
        description = None if fields[key].place == "path" else one.get("description")
        hold_field(fields[key], one["schema"], one.get("required", False), description)
        assert one.get("allowEmptyValue", False) == (fields[key].type.kind == "flag"), key


@ALL
def test_its_body_is_described_as_it_is(operation: Operation, item: Described, described: Described) -> None:
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
def test_its_answer_is_described_as_it_is(operation: Operation, item: Described, described: Described) -> None:
    reply = operation.reply
    answer = resolved(described["responses"][str(min(reply.statuses, key=lambda status: status == 204))])
    if reply.shape == "nothing":
        assert "content" not in answer
        return
    if reply.media:
        assert any(kind.startswith(reply.media) for kind in answer["content"])
        return
    assert set(answer["content"]) == {MSGPACK, JSON}
    schema = answer["content"][MSGPACK]["schema"]
    told, _ = properties(schema)
    if reply.shape == "states":
        assert set(told) - {"cursor", "changed"} == set(reply.names)
    elif reply.names:
        assert set(told) == set(reply.names)
    else:
        assert told or reply.shape == "own" or schema == {"type": "object"}


def test_what_is_made_of_the_table_is_up_to_date() -> None:
    page, openapi = GENERATE["PAGE"].read_text(), GENERATE["DOCUMENT"].read_text()
    assert GENERATE["BEGIN"] in page and GENERATE["with_reference"](page) == page, "make generate"
    assert GENERATE["with_operations"](openapi) == openapi, "make generate"
    assert [path for path, text in operations_code.files() if path.read_text() != text] == [], "make generate"
    for one in GENERATE["DOCUMENTS"]:
        assert quick_yaml.read(one.read_text())["info"]["version"] == jqmaster.__version__, "make generate"


def test_an_operation_that_is_not_described_is_written() -> None:
    text = GENERATE["DOCUMENT"].read_text()
    # One of its path alone, and one beside another.
    gone = {"/tags": "tags", "/jobs": "jobs"}
    for path in gone:
        start = text.index("    get:\n", text.index(f"  {path}:\n"))
        end = re.compile(r"^ {0,4}\S", re.M).search(text, start + 5)
        assert end
        text = text[:start] + text[end.start() :]
    whole = quick_yaml.read(GENERATE["with_operations"](text))
    assert whole["paths"].keys() == document()["paths"].keys()
    for path, name in gone.items():
        assert whole["paths"][path]["get"] == GENERATE["description"](OPERATIONS[name])
    from openapi_spec_validator import validate  # takes long to import

    validate(whole)


def test_each_script_has_an_operation_and_each_operation_a_script() -> None:
    assert {one.script for one in OPERATIONS.values()} - {""} == {
        script.stem for script in (ROOT / "scripts").glob("*.lua")
    } - INSIDE.keys()


def test_who_calls_is_said_to_the_scripts_that_note_it() -> None:
    heads = {script.stem: script.read_text() for script in (ROOT / "scripts").glob("*.lua")}
    assert {name for name, source in heads.items() if "actor?" in source} == NOTED
    assert {one.script for one in OPERATIONS.values() if one.says_actor} == NOTED
    assert not any(field.name == "actor" for one in OPERATIONS.values() for field in one.fields)


def test_there_is_a_handler_for_what_the_table_leaves_to_it() -> None:
    assert set(BY_HAND) == {one.name for one in OPERATIONS.values() if one.by_hand}


def test_the_ui_asks_for_what_there_is() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster/ui/static").rglob("*.js"))
    asked = re.findall(r"\bapi\.(get|post|put|patch|delete)\(\s*(?:path`([^`]+)`|'([^']+)')", sources)
    assert len(asked) > 30
    for method, template, plain in asked:
        pattern = re.sub(r"\\\$\\\{.*?\\\}", r"[^/]+", re.escape(template or plain))
        found = [one.path for one in OPERATIONS.values() if one.method == method.upper()]
        assert any(re.fullmatch(pattern, path) for path in found), f"{method} {template or plain}"
