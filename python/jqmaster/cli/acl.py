"""`acl`: what Redis has to grant users, a line for each."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli.options import Parser, Several, choice, command, namespace
from jqmaster.cli.status import EXIT_OK

_MORE = """\
Prints an ACL SETUSER line for each role, or with --role one user's, for
redis-cli to read: jqmaster acl | redis-cli. It asks nobody: the rights are
those of this version's scripts. A line adds to what its user has, and sets no
password. docs/operating.md says what this guards, and what it does not."""


def add(commands: Any) -> None:
    from jqmaster.wire.operation import ROLES

    parser = command(commands, "acl", _acl, "print what users of Redis may do, by role", _MORE)
    parser.option(
        "--role", action=Several, type=choice(*ROLES), metavar="ROLE",
        help=f"{', '.join(ROLES)}; may be given several times, and adds up (default: a user for each)",
    )  # fmt: skip
    parser.option("--user", help="its name (default: jq-ROLE)")
    parser.option(
        "--namespace", variable="JQ_NAMESPACE", metavar="{NAME}", default="{jq}", type=namespace,
        help="whose keys (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--replace", action="store_true",
        help="take away what it may now, such as the scripts of a version that has gone",
    )  # fmt: skip


def _acl(options: argparse.Namespace, parser: Parser) -> int:
    from jqmaster.engine import rights
    from jqmaster.engine.scripts import builtin
    from jqmaster.wire.operation import ROLES

    if options.user is not None and not options.role:
        parser.error("--user goes with --role")
    users = (
        {options.user or f"jq-{'-'.join(dict.fromkeys(options.role))}": options.role}
        if options.role
        else {f"jq-{role}": [role] for role in ROLES}
    )
    for user, roles in users.items():
        granted = [rule for role in roles for rule in rights.rules(role, options.namespace, builtin())]
        print(rights.line(user, granted, replace=options.replace))
    return EXIT_OK
