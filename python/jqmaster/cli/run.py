"""From the arguments to an exit code: the tree of commands, and what is said when one fails."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from jqmaster.cli import (
    acl,
    bench,
    change,
    completion,
    copying,
    doctor,
    enqueue,
    failures,
    find,
    jobs,
    limits,
    processes,
    queues,
    schedules,
    settings,
    stats,
    top,
    workers,
)
from jqmaster.cli.options import Parser, add_environment, check_environment, describe_more
from jqmaster.cli.status import (
    CODES,
    EPILOG,
    EXIT_FAILED,
    EXIT_TIMEOUT,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    Refused,
)

_INTERRUPTED, _PIPE = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    parser = build()
    options = parser.parse_args(_in_order(sys.argv[1:] if arguments is None else arguments))
    check_environment(options, options.parser)
    level = logging.DEBUG if options.verbose else logging.WARNING
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level, format=form, stream=sys.stderr)
    try:
        code = int(options.run(options, options.parser))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE
    except Exception as error:
        return failed(error, as_json=getattr(options, "json", False))


_WHERE = ("--url", "--redis", "--namespace", "--form")


def _in_order(arguments: Sequence[str]) -> list[str]:
    """With the options of all commands that stand in front of the command behind it, where they belong."""
    kept: list[str] = []
    moved: list[str] = []
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        one = arguments[place]
        takes_next = one in _WHERE
        is_shared = one == "--json" or one.partition("=")[0] in _WHERE
        size = 2 if takes_next else 1
        (moved if is_shared else kept).extend(arguments[place : place + size])
        place += size
    return [*kept, *arguments[place : place + 1], *moved, *arguments[place + 1 :]]


class _Version(argparse._VersionAction):
    """Unlike argparse's own, looks only when it is asked: a checkout then builds the scripts."""

    def __call__(self, parser: Any, *_: Any) -> None:
        print(processes.version_line())
        parser.exit()


def build() -> Parser:
    """The whole tree of commands."""
    parser = Parser(prog="jqmaster", description="JQ, a job queue on Redis.", epilog=EPILOG)
    parser.add_argument("-v", "--verbose", action="store_true", help="log more, to stderr")
    parser.add_argument("--version", action=_Version, help="print the version, and end")
    parser.set_defaults(root=parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in (
        processes, enqueue, jobs, find, change, queues, failures, limits, schedules, workers, stats, top,
        doctor, bench, copying, settings, acl, completion,
    ):  # fmt: skip
        module.add(commands)
    add_environment(parser)
    describe_more(parser)
    return parser


def failed(error: Exception, *, as_json: bool = False) -> int:
    """Say what went wrong, and give its exit code. Raises what can only be a fault of ours."""
    from jqmaster.errors import JQError, UnsuitableServer

    if isinstance(error, JQError):
        code, exit_code = error.code, CODES.get(error.code, EXIT_FAILED)
        message = f"{error.path}: {error.message}" if error.path else error.message or error.code
        if error.code in ("NOTFOUND", "CONFLICT"):
            # `id: there is no …`: which option that was is plain.
            message = message.removeprefix("id: ").removeprefix("name: ").removeprefix("worker: ")
    elif isinstance(error, Refused):
        code, exit_code, message = error.code, error.exit_code, str(error)
    elif isinstance(error, UnsuitableServer):
        code, exit_code, message = "UNAVAILABLE", EXIT_UNAVAILABLE, str(error)
    elif isinstance(error, TimeoutError):
        code, exit_code, message = "TIMEOUT", EXIT_TIMEOUT, str(error) or "the time is up"
    elif isinstance(error, OSError):
        code, exit_code, message = "FAILED", EXIT_FAILED, str(error)
        if error.filename is not None and error.strerror:
            message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ValueError):
        code, exit_code, message = "INVALID", EXIT_USAGE, str(error)
    else:
        raise error
    say(message, code, as_json=as_json)
    return exit_code


def say(message: str, code: str, *, as_json: bool) -> None:
    """One line on stderr: for people, or with --json for scripts."""
    from jqmaster.cli.show import plain

    line: Any = {"error": {"code": code, "message": message}}
    print(json.dumps(line) if as_json else f"jqmaster: {plain(message)}", file=sys.stderr, flush=True)
