"""Writes what is made of the heads of scripts: docs/operations.md and docs/operations.json, openapi/master.yaml
(openapi.py), and typed signatures (stubs.py). Into the other documents the package's version."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import openapi
import stubs
import vocabulary
from fields_code import told_apart
from vocabulary import PLAIN

from jqmaster import __version__
from jqmaster.cluster.cluster import WAYS
from jqmaster.cluster.listings import LISTINGS
from jqmaster.manifest.contract import ANYBODY, ROLES, SERVER, Argument, Operation, Reply, Type
from jqmaster.manifest.fields import FIELDS, Field
from jqmaster.manifest.manifest import operations, written
from jqmaster.server.http.routes import OWN

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "operations.md"
HAND = (ROOT / "openapi" / "schemas.yaml", ROOT / "openapi" / "worker.yaml")
HEAD = f"""# Operations

Made from the heads of [scripts/](../scripts) by `make generate`; for programs:
[operations.json](operations.json). Documents, such as `Job`, are described in
[schemas.yaml](../openapi/schemas.yaml), HTTP in [master.yaml](../openapi/master.yaml).

An operation is called with two keys, the namespace and `namespace:meta`, and with the arguments
shown: mostly a *spec*, a MessagePack map of the fields listed below it (with a star: required; what
is not explained has a [type](#types) of its name). `[spec]` is left out when it is empty; `jobs...`
stands for as many as there are, each document packed, followed by its value. `POST
/call/<operation>` takes a list of the same arguments, and answers with the reply. Roles are those
of HTTP keys: straight on Redis all may be called.

Any operation may answer `INVALID` and `VERSION`; other errors are listed. When Redis is out of
memory, those of kind `write` are refused with `OOM`; `drain` and `read` always run, `read` on
replicas too. A *function* is also a Redis function. No key has the role `{SERVER}`.
"""


def escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def typed(argument: Argument) -> str:
    least, most = (f"{end:.12g}" if end is not None else "" for end in (argument.least, argument.most))
    bounds = f", {least}..{most}" if least or most else ""
    default = f"; {str(argument.default).lower()}" if argument.default is not None else ""
    return f"`{argument.type}`{bounds}{default}"


def named(argument: Argument) -> str:
    """With its type, unless that has its name, as `cursor` and `actor` have."""
    name = f"`{argument.name}`" + ("" if argument.optional else "\\*")
    shown = typed(argument)
    return name if shown == f"`{argument.name}`" else f"{name} ({shown})"


def rows(arguments: Sequence[Argument]) -> Iterator[str]:
    """One for each that means something of its own, and one for those of which the type says all."""
    yield from (f"- {named(one)}: {escaped(one.meaning)}" for one in arguments if one.meaning)
    if plain := [named(one) for one in arguments if not one.meaning]:
        yield "- " + ", ".join(plain)


def reply(one: Reply) -> str:
    given = f" with {' or '.join(f'`{name}`' for name in one.given)}" if one.given else ""
    return f"`{one.type}`{given}" + (f": {escaped(one.meaning)}" if one.meaning else "")


def filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(one: Operation) -> Iterator[str]:
    yield f"## {one.name}\n"
    for part in filter(None, [one.summary, *one.description.split("\n\n")]):
        yield filled(escaped(part)) + "\n"
    yield filled(f"`{' '.join([one.name, *one.positions])}` → {'; '.join(map(reply, one.replies))}") + "\n"
    if one.arguments:
        yield "\n".join(filled(row, "  ") for row in rows(one.arguments)) + "\n"
    errors = [f"`{error.code} {error.path}`".replace(" `", "`") + (f" ({escaped(error.why)})" if error.why else "")
              for error in one.errors if (error.code, error.path) != ("INVALID", "field")]  # fmt: skip
    kept = [f"`{name}` needs {', '.join(roles)}" for name, roles in one.restricted.items()]
    facts = {
        "Errors": ", ".join(errors),
        "Role": "; ".join([", ".join(one.roles), *kept]),
        "Kind": one.flags + (", function" if one.is_function else ""),
        "HTTP": "; ".join(f"`{route.method} {route.path}`" for route in one.routes),
    }
    yield filled(" ".join(f"**{name}**: {text}." for name, text in facts.items() if text)) + "\n"


def types() -> str:
    return "## Types\n\n" + "\n".join(f"- `{name}`: {plain.meaning}" for name, plain in PLAIN.items()) + "\n"


def field_of_job(one: Field) -> str:
    usual = f"default: {one.default_text}" if one.default_text else f"`{one.usual}` by default" if one.words else ""
    facts = "; ".join(filter(None, [usual, one.needs and f"with `{one.needs}`"]))
    return filled(f"- {named(one)}: {told_apart(one.meaning, facts, one.protocol)}", "  ")


def fields_that(what: Callable[[Field], bool]) -> str:
    return ", ".join(f"`{one.name}`" for one in FIELDS if what(one))


def new_job() -> str:
    prose = (
        f"A job's document (`get`) does not show {fields_that(lambda one: not one.shown)}. "
        f"Its worker is told {fields_that(lambda one: one.told)}. "
        f"`change` takes {fields_that(lambda one: one.changed)}."
    )
    rows = "\n".join(map(field_of_job, FIELDS))
    return f"## NewJob\n\nWhat a job can be told.\n\n{rows}\n\n{filled(prose)}\n"


def page() -> str:
    parts = [HEAD, *(part for one in operations().values() for part in section(one)), new_job(), types()]
    return "\n".join(parts)


def with_version(document: str) -> str:
    """An OpenAPI document with the package's version."""
    return re.sub(r"^  version: .*$", f"  version: {__version__}", document, count=1, flags=re.MULTILINE)


def files() -> Iterator[tuple[Path, str]]:
    """What should be in each file. Ends this program where a head says what it may not."""
    check([*operations().values(), *(own.operation for own in OWN)])
    for path in HAND:
        yield path, with_version(path.read_text())
    yield PAGE, page()
    yield PAGE.with_suffix(".json"), written()
    yield openapi.DOCUMENT, openapi.written()
    yield from stubs.files()


# -- what heads may say ---------------------------------------------------------------------------


def plain_types(of: Type) -> Iterator[str]:
    """The names of plain types in a type."""
    if of.kind == "plain":
        yield of.name
    for inner in (*filter(None, [of.of]), *(inner for _, inner in of.members)):
        yield from plain_types(inner)


def wrong(one: Operation) -> Iterator[str]:
    """What is wrong with a head."""
    if not one.summary.endswith("."):
        yield "a head begins with a sentence"
    if not one.replies or one.replies[0].given:
        yield "there is no @reply"
    if not one.roles:
        yield "there is no @role"
    if one.flags not in ("read", "drain", "write"):
        yield f"@flags {one.flags}: expected read, drain or write"
    names = [argument.name for argument in one.arguments]
    if len(names) != len(set(names)):
        yield "an @arg is there twice"
    named = [*one.behind, *one.restricted, *(name for reply in one.replies for name in reply.given)]
    named += [route.place for route in one.routes]
    yield from (f"there is no @arg {name}" for name in named if name and name not in names)
    roles = {role for roles in (one.roles, *one.restricted.values()) for role in roles}
    yield from (f"there is no role {role}" for role in roles - {*ROLES, SERVER, ANYBODY})
    types = {name for said in (*one.arguments, *one.replies) for name in plain_types(said.of)}
    yield from (f"there is no type {name}" for name in types - {*PLAIN, *vocabulary.OWN})
    if one.over not in ("", *WAYS):
        yield f"@over {one.over}: expected one of {', '.join(WAYS)} (docs/cluster.md)"
    if one.over == "name" and one.name not in LISTINGS:
        yield "@over name: LISTINGS in cluster/listings.py does not have it"


def check(checked: Iterable[Operation]) -> None:
    """Ends this program where a head says what it may not, or two have the same request."""
    known: dict[tuple[str, str], str] = {}
    for one in checked:
        for problem in wrong(one):
            raise SystemExit(f"{one.name}: {problem}")
        for route in one.routes:
            other = known.setdefault((route.method, re.sub(r"\{.*\}", "{}", route.path)), one.name)
            if other != one.name:
                raise SystemExit(f"{one.name}: {route.method} {route.path} is a request of {other}, too")


def main() -> None:
    for path, text in files():
        path.write_text(text)


if __name__ == "__main__":
    main()
