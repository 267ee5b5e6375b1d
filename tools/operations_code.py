"""What tools/operations.py makes of the table of operations as Python: of each that is `made` a method of the engine,
one of `JQ`, and where it only reads a command. Those that are another thing there are written by hand."""

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
COMMAND_BY_HAND = {"bulks", "explain", "history", "marks", "usage"}
COMMANDS = [one for one in MADE if one.method == "GET" and one.script not in COMMAND_BY_HAND]
ANSWERS = {"nothing": "None", "document": "Document", "page": "Page", "list": "list[Document]"}
TYPES = {
    "text": "str", "zone": "str", "cursor": "str", "states": "str", "integer": "int", "moment": "int",
    "number": "float", "flag": "bool", "list": "Sequence[str]", "map": "Spec", "matcher": "Spec",
}  # fmt: skip
KINDS = {"integer": "N", "number": "NUMBER", "moment": "MS"}
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


def command(one: Operation) -> str:
    """A listing is cut where it is long."""
    lines = []
    for field in fields(one):
        name, kind = named(one, field), KINDS.get(field.type.kind, field.name.upper())
        meaning = f"  {field.meaning}" if field.meaning else ""
        flag = f"--{name.replace('_', '-')}{'' if field.type.kind == 'flag' else f' {kind}'}"
        lines.append((f"{name} {kind}" if needed(one, field) else flag) + meaning)
    is_page = one.reply.shape == "page"
    lines += ["--limit N=50  at most so many"] if is_page else []
    help_ = f"{one.summary[0].lower()}{one.summary[1:]}"
    found = f"client.{one.script}({passed(one, 'options.')})"
    columns, _, empty = one.shown.partition("\n")
    more = [found, *([repr(columns), repr(empty)] if one.shown else []), *(["limit=options.limit"] if is_page else [])]
    return (
        f'@asks("""{one.script}\n{help_}\n\n' + "\n".join(lines) + '\n""")\n'
        f"def _{one.script}(client: Client, options: Options) -> Replies:\n    yield told({', '.join(more)})\n"
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
    head = HEAD.format(
        "Commands for operations that only read, and of which the table says all.",
        "from jqmaster.cli.options import Client, Options, Replies, asks\nfrom jqmaster.cli.telling import told\n\n",
    )
    yield PACKAGE / "cli" / "made.py", formatted(head + "\n\n".join(map(command, COMMANDS)))
