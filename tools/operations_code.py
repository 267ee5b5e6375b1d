"""What tools/operations.py makes of the table of operations as Python: of each that is `made` a method of the engine,
and one of `JQ`. Those that are another thing there are written by hand."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from jqmaster.manifest.operation import Field, Operation
from jqmaster.manifest.operations import OPERATIONS

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "jqmaster"
MADE = [one for one in OPERATIONS.values() if one.made]
JQ_BY_HAND = {
    "explain", "history",  # of a handle
    "mark", "marks",  # take moments
    "revoke",  # `revoke_key`
    "trail",  # one after the other, as there may be many
}  # fmt: skip
ANSWERS = {"nothing": "None", "document": "Document", "page": "Page", "list": "list[Document]"}
TYPES = {
    "text": "str", "zone": "str", "cursor": "str", "states": "str", "integer": "int", "moment": "int",
    "number": "float", "flag": "bool", "list": "Sequence[str]", "map": "Spec", "matcher": "Spec",
}  # fmt: skip
RAISED = {"NOTFOUND": "NotFound", "CONFLICT": "Conflict", "FULL": "Full", "EXPIRED": "Expired"}
HEAD = (
    '"""{}\n\nMade from manifest/operations.py by `make generate`.\n"""\n\nfrom __future__ import annotations\n\n{}\n'
)


def named(one: Operation, field: Field) -> str:
    """What a parameter is called: `constraint_id`, as there are ids of many things."""
    if field.to != "id":
        return field.to
    before = one.path.split("/")[1]
    return f"{before}_id"


def fields(one: Operation) -> list[Field]:
    """Those that are no part of going through pages."""
    found = [field for field in one.fields if one.reply.shape != "page" or field.name not in ("cursor", "count")]
    wrong = [field.name for field in found if not field.to.isidentifier() or field.type.kind not in TYPES]
    if wrong or one.by_hand or one.reply.shape not in ANSWERS:
        raise SystemExit(f"{one.name} cannot be made, of {wrong or one.reply.shape}: write it by hand")
    return found


def needed(one: Operation, field: Field) -> bool:
    return field.required or field.place == "path" or one.bare


def parameters(one: Operation) -> str:
    given = [f"{named(one, field)}: {TYPES[field.type.kind]}" for field in fields(one) if needed(one, field)]
    named_ = [f"{named(one, field)}: {TYPES[field.type.kind]} | None = None" for field in fields(one)
              if not needed(one, field)]  # fmt: skip
    return ", ".join(["self", *given, *(["*", *named_] if named_ else [])])


def passed(one: Operation, prefix: str = "") -> str:
    """The parameters, as another method takes them."""
    return ", ".join(
        f"{prefix}{named(one, field)}" if needed(one, field) else f"{named(one, field)}={prefix}{named(one, field)}"
        for field in fields(one)
    )


def told(one: Operation) -> str:
    raised = ", ".join(RAISED[code] for code in one.errors if code in RAISED)
    parts = [one.summary, "" if one.made == "-" else one.made, f"Raises {raised}" if raised else ""]
    text = " ".join(part.removesuffix(".") + "." for part in parts if part)
    return textwrap.fill(f'"""{text}"""', 118, initial_indent="        ", subsequent_indent="        ")


def method(one: Operation) -> str:
    """Of the engine."""
    steps = ", **steps: Unpack[Steps]" if one.reply.shape == "page" else ""
    sent = [repr(one.script), *(f"{field.to}={named(one, field)}" for field in fields(one))]
    sent += [f"{name}={value!r}" for name, value in one.fixed.items()]
    sent += ["actor=self.actor"] if one.says_actor else []
    call = f"({', '.join(sent)}{', **steps' if steps else ''})"
    if one.bare:
        body = f"return replies.plain_document(await self.call({one.script!r}, {passed(one)}))"
    else:
        body = {
            "nothing": f"await self._ask{call}",
            "document": f"return await self._document{call}",
            "page": f"return await self._page{call}",
            "list": f"return [replies.plain_document(one) for one in await self._ask{call}]",
        }[one.reply.shape]
    return (
        f"    async def {one.script}({parameters(one)}{steps}) -> {ANSWERS[one.reply.shape]}:\n"
        f"{told(one)}\n        {body}\n"
    )


def jq_method(one: Operation) -> str:
    engine = f"(await self.aengine()).{one.script}"
    body = f"await {engine}({passed(one)})"
    if one.reply.shape == "page":
        ask = f"partial({engine}{', ' if passed(one) else ''}{passed(one)})" if passed(one) else engine
        body = f"await all_of({ask})"
    body = body if one.reply.shape == "nothing" else f"return {body}"
    answer = ANSWERS["list" if one.reply.shape == "page" else one.reply.shape]
    name = one.script
    return (
        f"    async def a{name}({parameters(one)}) -> {answer}:\n{told(one)}\n        {body}\n\n"
        f"    {name} = plain(a{name})\n"
    )


def formatted(source: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "120", "-"]
    return subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout


def files() -> Iterator[tuple[Path, str]]:
    """What should be in each file."""
    head = HEAD.format(
        "Operations of which the table says all.",
        "from typing import Unpack\n\nfrom jqmaster.engine import replies\nfrom jqmaster.engine.calls import Calling\n"
        "from jqmaster.engine.options import Steps\nfrom jqmaster.engine.replies import Document, Page\n\n\n"
        'class MadeCalls(Calling):\n    """A method for each."""\n',
    )
    yield PACKAGE / "engine" / "made.py", formatted(head + "\n".join(map(method, MADE)))
    head = HEAD.format(
        "What `JQ` has of operations of which the table says all.",
        "from functools import partial\n\nfrom jqmaster.client.link import Link, plain\n"
        "from jqmaster.client.listing import all_of\nfrom jqmaster.engine.engine import Operations\n"
        "from jqmaster.engine.replies import Document\n\n\n"
        'class MadeMethods:\n    """Every method has an async twin with an `a` before its name."""\n\n'
        "    link: Link\n\n"
        "    async def aengine(self) -> Operations:\n"
        '        """The operations as they are, for the loop that runs: a method for each, see `Engine`."""\n'
        "        return (await self.link.open()).engine\n",
    )
    methods = [jq_method(one) for one in MADE if one.script not in JQ_BY_HAND]
    yield PACKAGE / "client" / "made.py", formatted(head + "\n".join(methods))
