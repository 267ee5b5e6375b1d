"""All operations of this package: the heads of its scripts, of those of a checkout or those built into a wheel.

A head is the comment that a script begins with, line by line, each `@tag` with what belongs to it:
``@arg NAME TYPE[?] [LEAST..MOST] [= DEFAULT] meaning``, ``@argv`` what the script's arguments are where they are not
the spec alone, ``@reply TYPE [NAME] [with ARGUMENT, …] meaning``, ``@errors``, ``@conflict`` what that state of a job
means, ``@flags``, ``@role ROLE, … [with ARGUMENT, …]``, ``@bound any``, ``@over``, and ``@http METHOD PATH``, with
``@param`` for what else its request has.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jqmaster.manifest.contract import Argument, Error, Operation, Reply, Route, Type, type_of

_TAGS = frozenset("arg argv reply errors conflict flags role bound over http param".split())
_NUMBER = r"-?\d+(?:\.\d+)?(?:e\d+)?"
_ARGUMENT = re.compile(
    rf"(?P<name>[\w-]+)\s+(?P<type>\S+?)(?P<optional>\?)?(?:\s+(?P<least>{_NUMBER})?\.\.(?P<most>{_NUMBER})?(?!\S))?"
    r"(?:\s+=\s+(?P<default>\S+))?(?:\s+(?P<meaning>.+))?"
)
_REPLY = re.compile(
    r"(?P<type>\{[^}]*\}|[a-z]+<\{[^}]*\}>|\S+)(?: (?P<name>[a-z]\w*))??(?:\s+with (?P<given>\w+(?:, \w+)*))?"
    r"(?:\s{2,}(?P<meaning>.+))?"
)
_ROLE = re.compile(r"(?P<roles>[a-z]+(?:, [a-z]+)*)(?: with (?P<given>\w+(?:, \w+)*))?")
_HTTP = re.compile(r"(?P<method>GET|POST|PUT|DELETE) (?P<path>/\S*)")

PACKAGE = Path(__file__).parents[1]


@cache
def operations() -> Mapping[str, Operation]:
    """All operations, by name."""
    built, found = PACKAGE / "lua", {}
    for path in sorted((built if built.is_dir() else PACKAGE.parents[1] / "scripts").glob("*.lua")):
        with path.open(encoding="utf-8") as lines:
            if comment := comment_of(lines):  # which the library has not
                found[path.stem] = read(path.stem, comment)
    return MappingProxyType(found)


def written() -> str:
    """All of them as JSON, as docs/operations.json and each namespace have them."""
    return json.dumps({name: _to_json(asdict(one)) for name, one in operations().items()}, indent=1) + "\n"


def _to_json(value: Any) -> Any:
    """What says nothing is left out."""
    if isinstance(value, Mapping):
        return {name: _to_json(one) for name, one in value.items() if _says(name, one)}
    return [_to_json(one) for one in value] if isinstance(value, tuple) else value


def _says(name: str, value: Any) -> bool:
    return value not in (None, "", (), {}) and (value is not False or name == "default")


def comment_of(lines: Iterable[str]) -> str:
    """The comment that a script begins with, behind the first line that Redis asks for."""
    head = itertools.takewhile(lambda line: line.startswith(("--", "#!")), lines)
    return "\n".join(line[2:].rstrip() for line in head if line.startswith("--"))


def read(name: str, comment: str) -> Operation:
    """The operation that a head describes. Raises ValueError for what cannot be read; what it says is checked by `make
    generate`."""
    try:
        return _read(name, comment)
    except (ValueError, KeyError) as problem:
        raise ValueError(f"{name}: {problem.args[0]}") from problem


def lua_fields(operation: Operation) -> str:
    """The fields of the spec as a table of Lua (jqlua/base/fields.lua)."""
    behind = operation.behind
    return "{ " + ", ".join(lua_field(one) for one in operation.arguments if one.name not in behind) + " }"


def lua_field(argument: Argument) -> str:
    """One of them."""
    type_ = type_of(argument.type)
    inner = type_.of or type_
    if inner is not type_ and inner.name == "queue":
        return f'["{argument.name}"] = {{ "queues" }}'  # patterns, too: who reads it checks them
    parts = [f'"{type_.kind if type_.of or type_.words else type_.name}"']
    if argument.least is not None or argument.most is not None:
        parts += ["nil" if limit is None else repr(limit) for limit in (argument.least, argument.most)]
    if type_.of:
        parts.append(f'of = "{"choice" if inner.words else inner.name}"')
    if type_.distinct:
        parts.append("distinct = true")
    if inner.words:
        parts.append(f'words = "{" ".join(inner.words)}"')
    if not argument.optional:
        parts.append("required = true")
    return f'["{argument.name}"] = {{ {", ".join(parts)} }}'


def _read(name: str, comment: str) -> Operation:
    text, tagged = _split(comment)
    summary, _, description = text.partition("\n\n")
    flags, _, form = _one(tagged, "flags").partition(", ")
    argv = _one(tagged, "argv", "spec")
    roles, restricted = _roles(tagged.get("role", []))
    routes = [_matched(_HTTP, "http", value) for value in tagged.get("http", [])]
    own = tuple(map(_argument, tagged.get("param", [])))
    return Operation(
        name=name,
        summary=" ".join(summary.split()),
        description="\n\n".join(" ".join(part.split()) for part in description.split("\n\n") if part.strip()),
        arguments=tuple(_argument(value) for value in tagged.get("arg", [])),
        positions=tuple(argv.split(", ")) if argv != "nothing" else (),
        replies=tuple(_reply(value) for value in tagged.get("reply", [])),
        errors=_errors(_one(tagged, "errors")),
        flags=flags,
        is_function=form == "function",
        roles=roles,
        restricted=restricted,
        is_free=_one(tagged, "bound", "") == "any",
        over=_one(tagged, "over", ""),
        conflict=_one(tagged, "conflict", ""),
        routes=tuple(Route(method=one["method"], path=one["path"], parameters=own) for one in routes),
    )


def _split(comment: str) -> tuple[str, dict[str, list[str]]]:
    """The text, and what stands behind each tag, by its name."""
    text, *parts = re.split(r"^\s*@(\w+)", comment, flags=re.MULTILINE)
    tagged: dict[str, list[str]] = {}
    for tag, value in zip(parts[::2], parts[1::2], strict=True):
        if tag not in _TAGS:
            raise ValueError(f"there is no @{tag}")
        tagged.setdefault(tag, []).append(" ".join(filter(None, map(str.strip, value.splitlines()))))
    return text.strip(), tagged


def _one(tagged: dict[str, list[str]], tag: str, default: str | None = None) -> str:
    values = tagged.get(tag, [] if default is None else [default])
    if len(values) != 1:
        raise ValueError(f"expected one @{tag}, got {len(values)}")
    return values[0]


def _matched(pattern: re.Pattern[str], what: str, value: str) -> re.Match[str]:
    match = pattern.fullmatch(value)
    if match is None:
        raise ValueError(f"@{what} {value}: cannot be read")
    return match


def _argument(value: str) -> Argument:
    match = _matched(_ARGUMENT, "arg", value)
    type_ = type_of(match["type"])
    if re.match(r"[=.]|-?\d*\.\.", match["meaning"] or ""):
        raise ValueError(f"@arg {value}: expected LEAST..MOST, = DEFAULT, with blanks between")
    return Argument(
        name=match["name"],
        type=match["type"],
        optional=match["optional"] is not None,
        least=_number(match["least"]),
        most=_number(match["most"]),
        default=None if match["default"] is None else _value(type_, match["default"]),
        meaning=match["meaning"] or "",
    )


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    number = float(text)
    return int(number) if number.is_integer() else number


def _value(type_: Type, text: str) -> Any:
    """A default, or what a request always says."""
    if type_.name == "flag":
        return {"true": True, "false": False}[text]
    return _number(text) if type_.name in ("integer", "number", "seconds", "ms") else text


def _reply(value: str) -> Reply:
    match = _matched(_REPLY, "reply", value)
    given = tuple(match["given"].split(", ")) if match["given"] else ()
    return Reply(type=match["type"], name=match["name"] or "", given=given, meaning=match["meaning"] or "")


def _errors(value: str) -> tuple[Error, ...]:
    found = []
    for one in re.split(r",\s*(?![^()]*\))", value):
        match = _matched(re.compile(r"(?P<code>[A-Z]+)(?: (?P<path>\S+))?(?: \((?P<why>.*)\))?"), "errors", one)
        found.append(Error(code=match["code"], path=match["path"] or "", why=match["why"] or ""))
    return tuple(found)


def _roles(values: Iterable[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    roles: tuple[str, ...] = ()
    restricted: dict[str, tuple[str, ...]] = {}
    for value in values:
        match = _matched(_ROLE, "role", value)
        named = tuple(match["roles"].split(", "))
        if match["given"]:
            restricted |= dict.fromkeys(match["given"].split(", "), named)
        else:
            roles = named
    return roles, restricted
