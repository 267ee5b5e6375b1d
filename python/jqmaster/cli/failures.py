"""`failures`: what failed for good, by group."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, positive, reach
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK

_MORE = """\
The most recent first. `jobs --group GROUP` lists the jobs of a group,
`retry --group GROUP` has them run again, `discard --group GROUP` removes them."""


def add(commands: Any) -> None:
    parser = reach(command(commands, "failures", _failures, "list failures by group", _MORE))
    parser.option("--limit", type=positive, default=50, metavar="N", help="at most so many (default: %(default)s)")


def message_of(group: dict[str, Any]) -> str:
    """The newest message, without the group said twice."""
    message = show.one_line(group.get("message"))
    return message.removeprefix(f"{group['group']}: ")


def _failures(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        groups = sorted(client.failures(), key=lambda group: -group["last_ms"])
    if options.json:
        values.print_lines(groups[: options.limit])
        return EXIT_OK
    now = show.now_ms()
    table = show.Table(
        [show.Column("GROUP", shrinks=1), show.Column("JOBS", right=True, colour="red"), show.Column("FIRST"),
         show.Column("LAST"), show.Column("NEWEST MESSAGE", shrinks=2)]
    )  # fmt: skip
    for group in groups[: options.limit]:
        first, last = show.when(group["first_ms"], now), show.when(group["last_ms"], now)
        message = message_of(group)
        table.add(group["group"], show.count(group["count"]), first, last, message)
    table.print("no job has failed for good")
    if len(groups) > options.limit:
        print(show.paint(f"… and {show.counted(len(groups) - options.limit, 'group')} more; --limit", "dim"))
    return EXIT_OK
