"""The command line, `jqmaster COMMAND`. docs/cli.md shows each command with what it prints.

It is made with argparse and prints with a few small modules of its own (`show`, `progress`, `top`). click,
typer and rich were weighed: workers import this package on every host, so each dependency is paid for there;
what rich would add, tables that fit the width and a screen that redraws itself, are some 200 lines here; and
argparse's tree of parsers is all that help, environment variables (`options`) and completion need.

Commands speak to a master or straight to Redis by the same calls (`reach`). Imports are inside of functions,
so that `--help`, `version` and completion are quick.
"""

from __future__ import annotations

from jqmaster.cli.run import main

__all__ = ["main"]
