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
from fields_code import TOLD, sentence, told_apart
from kinds import JOB_ID, KINDS, filled, schema_of

from jqmaster.manifest.fields import FIELDS, Field

ROOT = Path(__file__).resolve().parents[1]
LIST = "python/jqmaster/ui/static/fields.js"

QUEUE = {"$ref": "#/components/schemas/QueueOfJob"}
TAGS, DEPENDS = (next(field for field in FIELDS if field.name == name) for name in ("tags", "depends"))
OF_A_WORKER = {
    "Name": {"type": "string", "minLength": 1, "maxLength": 255},
    "JobId": {"type": "string", "pattern": "^[0-9a-f]{14}([0-9a-f]{2})?$"},
}


def sentences(*texts: str) -> str:
    return " ".join(f"{sentence(text)}." for text in texts if text)


# -- schemas --------------------------------------------------------------------------------------


def described(field: Field) -> str:
    more = "" if field.protocol.startswith("See") else re.sub(r" \(see .*\)\)", "", field.protocol)
    words = [f"`{word.name}`: {word.meaning}" for word in field.words]
    return sentences(KINDS[field.kind].unit, field.meaning, more, *words)


def shape(field: Field, *, is_sent: bool) -> dict[str, Any]:
    """The type of a field in a request, or in a job's document."""
    if field.name == "queue":
        return QUEUE
    made: dict[str, Any] = schema_of(field)
    return made if is_sent or field.kind != "jobs" else made | {"items": JOB_ID}


def schema(field: Field, *, is_sent: bool) -> dict[str, Any]:
    made = shape(field, is_sent=is_sent) | {"description": described(field)}
    if is_sent and field.words:
        made["default"] = field.words[0].name
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
    def resolved(node: Any) -> Any:
        if isinstance(node, dict):
            own = OF_A_WORKER[node["$ref"].rsplit("/")[-1]] if "$ref" in node else {}
            return own | {key: resolved(value) for key, value in node.items() if key != "$ref"}
        return [resolved(one) for one in node] if isinstance(node, list) else node

    return {field.name: resolved(schema(field, is_sent=False)) for field in TOLD}


class Plain(yaml.SafeDumper):
    """No anchors: parts that are the same are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(properties: dict[str, Any], indent: str = " " * 8) -> str:
    """Each in one line where it fits."""
    text = ""
    for name, made in properties.items():
        for flow in (True, False):
            part = yaml.dump(
                made, Dumper=Plain, sort_keys=False, allow_unicode=True, width=118, default_flow_style=flow
            )
            if flow and len(f"{indent}{name}: {part}") <= 120 and part.count("\n") == 1:
                text += f"{indent}{name}: {part}"
                break
        else:
            text += f"{indent}{name}:\n" + "".join(f"{indent}  {line}\n" for line in part.splitlines())
    return text


# -- tables ---------------------------------------------------------------------------------------


def protocol_type(field: Field) -> str:
    words = ", ".join(f"`{word.name}`" + (" (default)" if not i else "") for i, word in enumerate(field.words))
    kind = "text of 1 to 255 bytes, required" if field.name == "name" else filled(KINDS[field.kind].told, field, words)
    usual = f"; {field.usual}" if field.usual and not field.words else ""
    return kind + usual + (f"; with `{field.needs}`" if field.needs else "")


def listed(chosen: Callable[[Field], bool]) -> str:
    return ", ".join(f"`{field.name}`" for field in FIELDS if chosen(field))


def protocol_list() -> str:
    rows = [f"- `{one.name}` ({protocol_type(one)}): {told_apart(one.meaning, one.protocol)}" for one in FIELDS]
    prose = (
        f"A job's document (`get`) does not show {listed(lambda one: not one.shown)}. "
        f"Its worker is told {listed(lambda one: one.told)}. `change` takes {listed(lambda one: one.changed)}."
    )
    lines = (textwrap.fill(row, 100, subsequent_indent="  ", break_on_hyphens=False) for row in rows)
    return "\n".join([*lines, "", *textwrap.wrap(prose, 100), ""])


# -- the web UI -----------------------------------------------------------------------------------


def control(field: Field) -> dict[str, Any]:
    """A field of the form, as of forms.js, and what else pages need to know of it."""
    made: dict[str, Any] = {"name": field.name, "label": field.label, "kind": field.kind}
    if type_ := KINDS[field.kind].control:
        made["type"] = type_
    if field.kind == "seconds":
        made["unit"] = field.unit or "s"
    if field.kind == "texts":
        made["rows"] = 2
    if field.hint:
        made["hint"] = field.hint
    if field.kind == "boolean":
        made["options"] = [["", "usual"], ["1", "yes"]]
    if field.words:
        (_, first, _), *others = field.words
        made["options"] = [["", f"{first} (usual)"], *([word.name, word.label] for word in others)]
    if field.default is not None:
        made["usual"] = field.default
    return made | ({"again": True} if field.again else {})


def js(value: Any, indent: str = "") -> str:
    """As biome leaves it: an object on one line where that fits."""
    inner = indent + "  "
    if isinstance(value, dict):
        whole = f"{{ {', '.join(f'{key}: {js(one)}' for key, one in value.items())} }}"
        lines = "".join(f"{inner}{key}: {js(one, inner)},\n" for key, one in value.items())
        return whole if "\n" not in whole and len(indent + whole) < 120 else f"{{\n{lines}{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + "".join(f"{inner}{js(one, inner)},\n" for one in value) + f"{indent}]"
    if isinstance(value, list):
        return f"[{', '.join(js(one) for one in value)}]"
    if isinstance(value, str) and "'" not in value:
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def ui_list() -> str:
    fields = [control(field) for field in FIELDS if field.label]
    return (
        "// What a job can be told, as forms and pages show it. Made from manifest/fields.py by `make generate`.\n"
        f"export const FIELDS = {js(fields)};\n"
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
    ("python/jqmaster/engine/options.py", "options", code.options),
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
    texts: dict[str, str] = {LIST: ui_list()}
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
