"""The command line, `jqmaster COMMAND`: its help tells all of it, docs/cli.md what one does with it.

Its frame is cyclopts, its tables are rich's. Commands speak to a server or straight to Redis by the same calls
(`reach.connect`). What makes a start slow is imported when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jqmaster.errors import NotInstalled, brought_by

_EXTRAS = {"serve": "server", "work": "worker"}  # which bring the command line as well


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        from jqmaster.cli.version import version_line

        print(version_line())
        return 0
    try:
        with brought_by(_EXTRAS.get(given[0] if given else "", "cli"), "this command"):
            from jqmaster.cli import run
    except NotInstalled as error:
        print(f"jqmaster: {error}", file=sys.stderr)
        return 1
    return run.main(given)
