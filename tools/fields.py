"""Makes what is checked in from the table of a job's fields: schemas, tables of the documentation, a list for the UI,
and parts of the engine and the library (fields_code.py)."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fields_code as code
import yaml
from fields_code import TOLD, sentence
from openapi import schema as schema_of

from jqmaster.manifest.contract import type_of
from jqmaster.manifest.fields import FIELDS, Field

ROOT = Path(__file__).resolve().parents[1]
LIST = "python/jqmaster/ui/static/fields.js"
KEYWORDS = "python/jqmaster/engine/keywords.py"

QUEUE = {"$ref": "#/components/schemas/QueueOfJob"}
TAGS, DEPENDS = (next(field for field in FIELDS if field.name == name) for name in ("tags", "depends"))
UNITS = {"seconds": "Seconds", "moment": "Unix seconds"}
# What a form asks for by type, and with which control.
CONTROLS = {
    "integer": ("integer", "number"), "number": ("number", "number"), "seconds": ("seconds", "number"),
    "moment": ("moment", "datetime"), "flag": ("boolean", "select"), "choice": ("choice", "select"),
    "list": ("names", "list"), "map": ("texts", "json"),
}  # fmt: skip


def sentences(*texts: str) -> str:
    return " ".join(f"{sentence(text)}." for text in texts if text)


# -- schemas --------------------------------------------------------------------------------------


def described(field: Field) -> str:
    more = "" if field.protocol.startswith("See") else re.sub(r" \(see .*\)\)", "", field.protocol)
    words = [f"`{name}`: {meaning}" for name, meaning in zip(field.of.words, field.words, strict=True)]
    return sentences(UNITS.get(field.type, ""), field.meaning, more, *words)


def shape(field: Field, *, is_sent: bool) -> dict[str, Any]:
    """The type of a field in a request, or in a job's document."""
    if field.name == "queue":
        return QUEUE
    of = field.of if is_sent or field != DEPENDS else type_of("set<job>")
    return schema_of(of, field.least, field.most)


def schema(field: Field, *, is_sent: bool) -> dict[str, Any]:
    made = shape(field, is_sent=is_sent) | {"description": described(field)}
    if is_sent and field.words:
        made["default"] = field.of.words[0]
    elif is_sent and field.default is not None:
        made["default"] = field.default
    return made


def component(field: Field) -> str:
    """What the schema of a field is called; names and queues are known from elsewhere."""
    return {"name": "Name", "queue": "QueueOfJob"}.get(field.name) or field.name.title().replace("_", "")


def components() -> dict[str, Any]:
    return {component(field): schema(field, is_sent=True) for field in FIELDS if field.name not in ("name", "queue")}


def refs(fields: Iterable[Field], **others: Any) -> dict[str, Any]:
    return {field.name: {"$ref": f"#/components/schemas/{component(field)}"} for field in fields} | others


def change() -> dict[str, Any]:
    # They may all be taken away.
    tags = {key: value for key, value in shape(TAGS, is_sent=True).items() if key != "minItems"}
    changed = [field for field in FIELDS if field.changed]
    return refs(changed, tags=tags | {"description": "Instead of those it has."})


def job() -> dict[str, Any]:
    return refs([field for field in FIELDS if field.shown], depends=schema(DEPENDS, is_sent=False))


def told() -> dict[str, Any]:
    return refs(TOLD, depends=schema(DEPENDS, is_sent=False))


def told_worker() -> dict[str, Any]:
    return {field.name: schema(field, is_sent=False) for field in TOLD}


class Plain(yaml.SafeDumper):
    """No anchors: parts that are the same are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(properties: dict[str, Any], indent: str = " " * 8) -> str:
    """What is plain stands in one line."""
    text = yaml.dump(properties, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return textwrap.indent(text, indent)


# -- the web UI -----------------------------------------------------------------------------------


def control(field: Field) -> dict[str, Any]:
    """A field of the form, as of forms.js, and what else pages need to know of it."""
    kind, type_ = CONTROLS.get(field.of.name or field.of.kind, ("name", "text"))
    label = field.name.replace("_", " ").capitalize()
    made: dict[str, Any] = {"name": field.name, "label": label, "kind": kind, "type": type_}
    more = {"list": "With commas between", "json": "As JSON"}.get(type_, "")
    made["hint"] = re.sub("[`*]", "", sentences(field.meaning, field.usual and f"Usual: {field.usual}", more))
    if type_ == "json":
        made["rows"] = 2
    if kind == "seconds":
        made["unit"] = "s"
    if kind == "boolean":
        made["options"] = [["", "usual"], ["1", "yes"]]
    if first := field.of.words[:1]:
        made["options"] = [["", f"{first[0]} (usual)"], *([word, word] for word in field.of.words[1:])]
    if field.default is not None:
        made["usual"] = field.default
    # For a job that is enqueued again what it waited for has passed.
    return made | {"again": field.shown and field.name not in ("depends", "if_failed")}


def ui_list() -> str:
    fields = (json.dumps(control(field)) for field in FIELDS if field.name not in ("name", "queue"))
    return (
        "// What a job can be told, as forms and pages show it. Made from manifest/fields.py by `make generate`.\n"
        + "export const FIELDS = [\n"
        + "".join(f"  {field},\n" for field in fields)
        + "];\n"
    )


# -- writing --------------------------------------------------------------------------------------

PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("openapi/schemas.yaml", "fields", lambda: as_yaml(components(), " " * 4)),
    ("openapi/schemas.yaml", "new job", lambda: as_yaml(refs(FIELDS))),
    ("openapi/schemas.yaml", "change", lambda: as_yaml(change())),
    ("openapi/schemas.yaml", "document", lambda: as_yaml(job())),
    ("openapi/schemas.yaml", "told", lambda: as_yaml(told())),
    ("openapi/worker.yaml", "told", lambda: as_yaml(told_worker())),
    ("jqlua/job/jobspec.lua", "fields", code.lua_fields),
    ("jqlua/job/jobs.lua", "told", code.lua_told),
    ("python/jqmaster/engine/replies.py", "told", code.members_of_job),
)


def replaced(text: str, name: str, made: str) -> str:
    """`text` with `made` between its marks, which are comments: `fields.py: <name>` and `end of <name>`."""
    pattern = re.compile(rf"(^[^\n]*fields\.py: {name}\b[^\n]*\n).*?(^[^\n]*end of {name}\b)", re.M | re.S)
    replacement, count = pattern.subn(lambda found: found[1] + made + found[2], text)
    if count != 1:
        raise SystemExit(f"expected one place for {name!r}, found {count}")
    return replacement


def files() -> Iterable[tuple[Path, str]]:
    """What should be in each file."""
    texts: dict[str, str] = {LIST: ui_list(), KEYWORDS: code.keywords()}
    for path, name, make in PARTS:
        texts[path] = replaced(texts.get(path) or (ROOT / path).read_text(), name, make())
    return [(ROOT / path, text) for path, text in texts.items()]


def main() -> None:
    for path, text in files():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
