"""The command line, `jqmaster COMMAND`. docs/cli.md shows each command with what it prints.

It is made with argparse and prints with a few small modules of its own (`show`, `progress`, `top`). click,
typer and rich were weighed: workers import this package on every host, so each dependency is paid for there;
what rich would add, tables that fit the width and a screen that redraws itself, are some 200 lines here; and
argparse's tree of parsers is all that help, environment variables (`options`) and completion need.

Commands speak to a master or straight to Redis by the same calls (`reach`). Imports are inside of functions,
so that `--help`, `version` and completion are quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        from jqmaster.cli.version import version_line

        print(version_line())
        return 0
    from jqmaster.cli import run

    return run.main(given)
