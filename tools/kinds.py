"""What the kinds of a job's fields are to each who reads or writes one: a new kind is an entry here. Texts may have
`{least}` and `{most}` of the field, as Lua `{low}` and `{high}`, and its `{words}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jqmaster.manifest.fields import Field

LEAST, MOST, WORDS = "{least}", "{most}", "{words}"
LIMITS = f"{LEAST} to {MOST}"
CONTROL = r"\x00-\x1f\x7f"
URL = rf"^https?://[A-Za-z0-9\[][^\s#@/?{CONTROL}]*([/?][^\s#{CONTROL}]*)?$"
# What other schemas use as well; a worker's document has no others to refer to.
NAME = {"$ref": "#/components/schemas/Name"}
JOB_ID = {"$ref": "#/components/schemas/JobId"}


class Kind(NamedTuple):
    """`told`: what docs/operations.md says; a description begins with the `unit`. `lua`: the field, as of
    jqlua/base/fields.lua. `python`: what the library takes, `job` what a worker's `Job` has where that is
    another type. `control`: of the UI's form. `good`: some values, as they are sent."""

    schema: Mapping[str, Any]
    told: str
    lua: str
    python: str
    good: tuple[Any, ...]
    job: str = ""
    control: str = ""
    unit: str = ""


def _number(name: str, told: str, kind: str, python: str, good: tuple[Any, ...], **more: str) -> Kind:
    schema = {"type": name, "minimum": LEAST, "maximum": MOST}
    lua = f'{{ "{kind}", {{low}}, {{high}} }}'
    return Kind(schema, told, lua, python, good, **{"control": "number", **more})


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": LEAST, "maxItems": MOST, "uniqueItems": True, "items": items}


KINDS: Mapping[str, Kind] = {
    "name": Kind(NAME, "text as a `name`", '{ "name" }', "str", ("x", "é y")),
    "url": Kind(
        {"type": "string", "maxLength": MOST, "pattern": URL}, "http or https URL without user and `#`",
        '{ "url" }', "str",
        ("http://h/", "https://é.example/a?b=c"),
    ),
    "integer": _number("integer", f"integer, {LIMITS}", "integer", "int", (0, 7)),
    "number": _number("number", LIMITS, "number", "float", (0.5, 0, 1)),
    "seconds": _number(
        "number", f"seconds, {LIMITS}", "seconds", "Seconds", (2.0,), job="float", unit="Seconds",
    ),
    "moment": _number(
        "number", f"Unix seconds, {LIMITS}", "moment", "datetime | float", (5.0,), job="float",
        control="datetime", unit="Unix seconds",
    ),
    "boolean": Kind(
        {"type": "boolean"}, "boolean",
        '{ "flag" }', "bool", (True,), control="select",
    ),
    "choice": Kind(
        {"type": "string", "enum": WORDS}, WORDS, '{ "choice", words = "{words}" }',
        f"Literal[{WORDS}]", ("w",), job="str", control="select",
    ),
    "names": Kind(
        _list(NAME), f"list of {LIMITS} different texts, each as a `name`",
        '{ "list", {low}, {high}, of = "name", distinct = true }', "Sequence[str]", (["x"], ["x", "é y"]),
        job="tuple[str, ...] = ()", control="list",
    ),
    # Ids, or indexes of jobs that are enqueued with it.
    "jobs": Kind(
        _list({"oneOf": [JOB_ID, {"type": "integer", "minimum": 0, "maximum": 999}]}),
        f"list of {LIMITS} ids, or integers: indexes of earlier jobs of this call",
        '{ "list", {low}, {high}, of = "reference", distinct = true }', "Sequence[str | Reference]", (["id"],),
        job="tuple[str, ...] = ()", control="list",
    ),
    "texts": Kind(
        {
            "type": "object", "maxProperties": MOST,
            "propertyNames": {"minLength": 1, "maxLength": 255, "pattern": f"^[^{CONTROL}]+$"},
            "additionalProperties": {"type": "string", "maxLength": 1024, "pattern": f"^[^{CONTROL}]*$"},
        },
        f"map of at most {MOST} texts",
        '{ "map" }',
        "Mapping[str, str]", ({"tenant": "é"}, {"traceparent": "00-ab", "empty": ""}),
        job="Mapping[str, str] = {}", control="json",
    ),
}  # fmt: skip


def plain(number: float) -> float:
    return int(number) if number == int(number) else number


def number(value: float) -> str:
    return "10^10" if value == 1e10 else str(plain(value))


def filled(text: str, field: Field, words: str = "") -> str:
    """With its numbers and words."""
    low, high = (repr(plain(limit)) if limit < 1e10 else "1e10" for limit in (field.least, field.most))
    values = {LEAST: number(field.least), MOST: number(field.most), "{low}": low, "{high}": high, WORDS: words}
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def schema_of(field: Field) -> dict[str, Any]:
    """Of its kind, with its numbers and words."""
    made = json.dumps(KINDS[field.kind].schema)
    values = {LEAST: plain(field.least), MOST: plain(field.most), WORDS: [word.name for word in field.words]}
    for name, value in values.items():
        made = made.replace(json.dumps(name), json.dumps(value))
    return dict(json.loads(made))
