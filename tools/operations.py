"""Writes what is made of the heads of scripts: docs/operations.md and docs/operations.json, openapi/master.yaml
(openapi.py), and typed signatures (stubs.py). Into the other documents the package's version."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fields
import openapi
import stubs

from jqmaster import __version__
from jqmaster.manifest.contract import SERVER, Argument, Operation, Reply, Route
from jqmaster.manifest.manifest import operations, to_json
from jqmaster.manifest.types import PLAIN

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "operations.md"
HAND = (ROOT / "openapi" / "schemas.yaml", ROOT / "openapi" / "worker.yaml")
HEAD = f"""# Operations

Made from the heads of [scripts/](../scripts) by `make generate`. The same for programs:
[operations.json](operations.json). Documents, such as `Job`, are described in
[schemas.yaml](../openapi/schemas.yaml), and all of the HTTP API in
[master.yaml](../openapi/master.yaml).

An operation is called with two keys, the namespace and `namespace:meta`, and with *arguments of
the script*: mostly a spec, a MessagePack map of the arguments below. `[spec]` is left out when it
is empty; `jobs...` stands for as many as there are, each document packed, with its value as an
argument of its own behind it. `POST /call/<operation>` takes a list of the same, and gives the same
reply. An argument with a star must be there.

Any operation may answer `INVALID` and `VERSION`. Of each kind one is refused with `OOM` when Redis
is out of memory: `write`. `drain` and `read` always run, and `read` runs on replicas too. Those
marked *function* are Redis functions as well. A role named `{SERVER}` no key has.
"""


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def typed(one: Argument) -> str:
    least, most = (f"{end:.12g}" if end is not None else "" for end in (one.least, one.most))
    bounds = f", {least}..{most}" if least or most else ""
    default = f"; {str(one.default).lower()}" if one.default is not None else ""
    return f"`{one.type}`{bounds}{default}".replace("|", "\\|")


def row(one: Argument) -> str:
    name = f"`{one.name}`" + ("" if one.optional else " *")
    usual = PLAIN[one.type].meaning if one.type in PLAIN else ""
    return f"| {name} | {typed(one)} | {escaped(one.meaning or usual)} |"


def reply(one: Reply) -> str:
    given = f" with {' or '.join(f'`{name}`' for name in one.given)}" if one.given else ""
    return f"`{one.type}`{given}" + (f": {escaped(one.meaning)}" if one.meaning else "")


def request(one: Route) -> str:
    fixed = "".join(f", `{name}` is {str(value).lower()}" for name, value in one.fixed.items())
    return f"`{one.method} {one.shown}`{fixed}"


def section(one: Operation) -> Iterator[str]:
    yield f"## {one.name}\n"
    yield textwrap.fill(escaped(one.summary), 100) + "\n"
    for part in filter(None, one.description.split("\n\n")):
        yield textwrap.fill(escaped(part), 100) + "\n"
    if one.arguments:
        yield "\n".join(["| argument | type | |", "| --- | --- | --- |", *map(row, one.arguments)]) + "\n"
    errors = [f"`{error.code} {error.path}`".replace(" `", "`") + (f" ({escaped(error.why)})" if error.why else "")
              for error in one.errors]  # fmt: skip
    kept = [f"`{name}` needs {', '.join(roles)}" for name, roles in one.restricted.items()]
    facts = {
        "Script": ", ".join(f"`{position}`" for position in one.positions) or "no arguments",
        "Reply": "; ".join(map(reply, one.replies)),
        "Errors": ", ".join(errors),
        "For": "; ".join([", ".join(one.roles), *kept]),
        "Kind": one.flags + (", function" if one.is_function else ""),
        "Cost": escaped(one.cost),
        "HTTP": "; ".join(map(request, one.routes)),
    }
    lines = [f"- **{name}**: {text}" for name, text in facts.items() if text]
    how: dict[str, Any] = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    yield "\n".join(textwrap.fill(line, 100, **how) for line in lines) + "\n"


def types() -> str:
    rows = [f"| `{name}` | {plain.meaning} |" for name, plain in PLAIN.items()]
    return "## Types\n\n" + "\n".join(["| type | |", "| --- | --- |", *rows]) + "\n"


def new_job() -> str:
    return f"## NewJob\n\nWhat a job can be told.\n\n{fields.protocol_table()}"


def page() -> str:
    parts = [HEAD, *(part for one in operations().values() for part in section(one)), new_job(), types()]
    return "\n".join(parts)


def with_version(document: str) -> str:
    """An OpenAPI document with the package's version."""
    return re.sub(r"^  version: .*$", f"  version: {__version__}", document, count=1, flags=re.MULTILINE)


def files() -> Iterator[tuple[Path, str]]:
    """What should be in each file."""
    for path in HAND:
        yield path, with_version(path.read_text())
    yield PAGE, page()
    yield PAGE.with_suffix(".json"), json.dumps(to_json(operations().values()), indent=1) + "\n"
    yield openapi.DOCUMENT, openapi.written()
    yield from stubs.files()


def main() -> None:
    for path, text in files():
        path.write_text(text)


if __name__ == "__main__":
    main()
