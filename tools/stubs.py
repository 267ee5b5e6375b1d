"""Writes typed signatures of all operations from the heads of their scripts: for the engine, and for `JQ.operations`,
which has each for plain code and for coroutines."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from jqmaster.engine.calling import reply_name
from jqmaster.manifest.contract import Argument, Operation, Reply
from jqmaster.manifest.manifest import operations
from jqmaster.manifest.types import OWN, PLAIN, Type, type_of

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "jqmaster"
BY_HAND = ("enqueue", "grant")  # of engine/work.py
MADE = "# Made from the heads of scripts/*.lua by `make generate`.\n"
_DOCUMENTS = {
    "By": "str | Sequence[str]", "Cost": "float | str", "Lease": "Sequence[Any]",
    "NotedLeases": "Sequence[Sequence[Any]]",     "Matcher": "Spec | bytes",
}  # fmt: skip
_MOMENTS = {"seconds": "float | timedelta", "moment": "float | datetime", "moment_ms": "int | datetime"}
_LISTED = {"queue": "str | Sequence[str]"}


def annotation(of: Type) -> str:
    """Of an argument."""
    match of.kind:
        case "choice":
            return f"Literal[{', '.join(map(repr, of.words))}]"
        case "document":
            return _DOCUMENTS.get(of.name, "Spec")
        case "list":
            assert of.of is not None
            return _LISTED.get(of.of.name, f"Sequence[{annotation(of.of)}]")
        case "map":
            assert of.of is not None
            return f"Mapping[str, {annotation(of.of)}]"
    return _MOMENTS.get(of.name, PLAIN[of.name].python)


def answer(of: Type, operation: str) -> str:
    """Of a reply."""
    found = "Document"
    match of.kind:
        case "document":
            found = "list[Document]" if of.name == "SettingDescriptions" else "Document"
        case "page":
            found = "Page"
        case "list":
            assert of.of is not None
            found = f"list[{answer(of.of, operation)}]"
        case "members":
            found = answer(of.members[0][1], operation) if len(of.members) == 1 else reply_name(operation)
        case "plain":
            found = OWN.get(of.name) or PLAIN[of.name].python
    return found + (" | None" if of.optional else "")


def argument(one: Argument, operation: Operation, *, needed: bool) -> str:
    """As a parameter."""
    of = type_of(one.type)
    is_pair = f"{one.name}..." in operation.positions and of.of is not None and of.of.kind == "document"
    kind = "Sequence[Sequence[Any]]" if is_pair else annotation(of)
    return f"{one.name}: {kind}" if needed else f"{one.name}: {kind} | None = ..."


def overloads(one: Operation) -> list[tuple[Reply, str]]:
    """Each reply, and the argument that it is given for."""
    special = [(reply, name) for reply in one.replies for name in reply.given]
    return [*special, (one.replies[0], "")]


def signature(one: Operation, reply: Reply, given: str, name: str, is_async: bool) -> str:
    without = {other for told in one.replies for other in told.given if not given}
    shown = [argument_ for argument_ in one.arguments if argument_.name not in without and argument_.name != "actor"]
    first = [argument(each, one, needed=True) for each in shown if not each.optional]
    rest = [argument(each, one, needed=each.name == given) for each in shown if each.optional]
    parameters = ", ".join(["self", *first, *(["*"] if rest and given else []), *rest])
    start = "async def" if is_async else "def"
    return f"    {start} {name}({parameters}) -> {answer(reply.of, one.name)}:\n"


def method(one: Operation, name: str, *, is_async: bool) -> str:
    """One method, with an overload for each reply."""
    several = overloads(one)
    text = ""
    for reply, given in several:
        text += "    @overload\n" if len(several) > 1 else ""
        text += signature(one, reply, given, name, is_async)
        text += textwrap.indent(textwrap.fill(f'"""{one.summary}"""', 110), " " * 8) + "\n"
    return text


def tuples() -> str:
    """Replies of several parts."""
    text = ""
    for one in operations().values():
        for reply in one.replies:
            if reply.of.kind == "members" and len(reply.of.members) > 1:
                text += f"class {reply_name(one.name)}(NamedTuple):\n"
                text += "".join(f"    {name}: {answer(of, one.name)}\n" for name, of in reply.of.members) + "\n"
    return text


HEAD = """from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, overload

"""
REPLIES = "Assigned, Document, Finished, Page, Picked, Result"


def engine_stub() -> str:
    text = MADE + HEAD + "from jqmaster.engine.calling import Calling, Spec\n"
    text += f"from jqmaster.engine.replies import {REPLIES}\n\n{tuples()}class CallsByName(Calling):\n"
    for one in operations().values():
        if one.name not in BY_HAND and not keyword.iskeyword(one.name):
            text += method(one, one.name, is_async=True)
    return text


def plain_stub() -> str:
    """Of each operation the method for plain code, and that for coroutines."""
    text = MADE + HEAD + "from jqmaster.client.link import Link\nfrom jqmaster.engine.calling import Spec\n"
    names = ", ".join(re.findall(r"class (\w+)", tuples()))
    text += f"from jqmaster.engine.operations import {names}\nfrom jqmaster.engine.replies import {REPLIES}\n\n"
    text = text.replace("NamedTuple, ", "") + "class PlainOperations:\n"
    text += "    def __init__(self, link: Link) -> None: ...\n"
    for start, name in (("def", "call"), ("async def", "acall")):
        text += f"    {start} {name}(self, operation: str, /, *arguments: Any, **named: Any) -> Any: ...\n"
    for one in operations().values():
        if one.name not in BY_HAND and not keyword.iskeyword(one.name):
            text += method(one, one.name, is_async=False) + method(one, f"a{one.name}", is_async=True)
    return text


def formatted(source: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "120", "--stdin-filename", "a.pyi", "-"]
    return subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout


def files() -> Iterator[tuple[Path, str]]:
    """What should be in each file."""
    yield PACKAGE / "engine" / "operations.pyi", formatted(engine_stub())
    yield PACKAGE / "client" / "operations.pyi", formatted(plain_stub())
