"""`config` and `audit`: the namespace's settings, and whether its indexes hold."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, reach, verbs
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import client_of, open_client, redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, EXIT_USAGE, Refused


def add(commands: Any) -> None:
    config = reach(command(commands, "config", _config, "show and change settings"))
    under = verbs(config)
    setting = reach(command(under, "set", _set, "change settings, all or none"), nested=True)
    setting.add_argument("settings", metavar="SETTING=VALUE", nargs="+", help="SETTING= is its default again")
    audit = command(
        commands, "audit", _audit, "recount all indexes against the job records",
        "Needs Redis itself. A quiet namespace has no problems; exit code 1 if it has.",
    )  # fmt: skip
    reach(audit)


def assignments(texts: list[str]) -> dict[str, Any]:
    """`name=value` each; None for `name=`. Raises Refused."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refused(f"{text}: expected SETTING=VALUE, such as result_ttl=600", EXIT_USAGE, "INVALID")
        given[name] = _value(name, value) if value else None
    return given


def _value(name: str, text: str) -> bool | float:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise Refused(f"{name}: expected a number, true or false, got {text!r}", EXIT_USAGE, "INVALID") from None


def _config(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        if options.json:
            values.print_json(client.config())
        else:
            _print(client.describe_config())
    return EXIT_OK


def _print(settings: list[dict[str, Any]]) -> None:
    table = show.Table(
        [show.Column("SETTING"), show.Column("VALUE", right=True),
         show.Column("DEFAULT", right=True, colour="dim"),
         show.Column("MEANING", shrinks=1)]
    )  # fmt: skip
    for one in settings:
        is_own = one["value"] != one["default"]
        value = _valued(one, one["value"])
        default = _valued(one, one["default"]) if is_own else ""
        table.add(one["name"], (value, "bold" if is_own else None), default, one["meaning"])
    table.print()


def _valued(setting: dict[str, Any], value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if setting.get("unit") in ("s", "seconds"):
        return show.duration(value)
    return f"{value:,g}" if isinstance(value, float) and value < 1e6 else f"{value:,}"


def _set(options: argparse.Namespace, _parser: Parser) -> int:
    given = assignments(options.settings)
    with open_client(options) as client:
        described = {one["name"]: one for one in client.describe_config()}
        for name in [name for name, value in given.items() if value is None]:
            if name not in described:
                raise Refused(f"no such setting: {name}", EXIT_USAGE, "INVALID")
            given[name] = described[name]["default"]
        after = client.configure(**given)
    if options.json:
        values.print_json(after)
    else:
        _print([{**described[name], "value": after[name]} for name in given])
    return EXIT_OK


def _audit(options: argparse.Namespace, _parser: Parser) -> int:
    where = redis_place(options, "audit")
    problems: list[str] = []
    cursor = "0"
    with (
        client_of(where) as client,
        Progress("auditing", unit="steps") as bar,
    ):
        while True:
            step = client.ask(lambda it, cursor=cursor: it.audit(cursor))  # type: ignore[misc]
            problems += step.problems
            cursor = step.cursor
            bar.add(1)
            if cursor == "0":
                break
    if options.json:
        values.print_json({"problems": problems})
    else:
        for problem in problems:
            print(show.plain(problem))
        print(f"{where.namespace}: {show.counted(len(problems), 'problem') if problems else 'no problems'}")
    return EXIT_FAILED if problems else EXIT_OK
