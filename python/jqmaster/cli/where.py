"""Which jobs are meant: the options of `jobs`, `retry`, `discard`, `cancel`."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Parser, Several, choice, duration


def add(parser: Parser) -> None:
    """The filter's options. All that are given must hold."""
    group: Any = parser.add_argument_group("which jobs (all that are given must hold)")
    for flag, text, more in (
        ("--queue", "in this queue", {"metavar": "NAME"}),
        ("--status", "in this state; may be given several times",
         {"metavar": "STATE", "type": choice(*show.STATES), "action": Several}),
        ("--name", "of this name", {"metavar": "NAME"}),
        ("--tag", "with this tag", {"metavar": "TAG"}),
        ("--group", "failed for good with this group (see failures)", {"metavar": "GROUP"}),
        ("--message", "whose last failure says this somewhere", {"metavar": "TEXT"}),
        ("--older", "created longer ago than this: 90, 5m, 2h, 1d", {"metavar": "TIME", "type": duration}),
        ("--newer", "created more recently than this", {"metavar": "TIME", "type": duration}),
    ):  # fmt: skip
        group.add_argument(flag, help=text, **more)


def read(options: argparse.Namespace) -> dict[str, Any]:
    """The filter, as `where` takes it; empty when nothing was given."""
    where: dict[str, Any] = {
        name: getattr(options, name) for name in ("queue", "status", "name", "tag", "group", "message")
        if getattr(options, name) is not None
    }  # fmt: skip
    if options.older is not None:
        where["to_ms"] = show.now_ms() - round(options.older * 1000)
    if options.newer is not None:
        where["from_ms"] = show.now_ms() - round(options.newer * 1000)
    return where
