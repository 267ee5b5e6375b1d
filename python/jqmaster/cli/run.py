"""From the arguments to an exit code: the tree of commands, and what is said when one fails."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from functools import cache

from jqmaster.cli.options import Command, Misused, Options, Parser, check_environment, is_yes
from jqmaster.cli.reach import client_of, complain, place, tell
from jqmaster.cli.status import CODES, EPILOG, EXIT_FAILED, EXIT_USAGE, Refused
from jqmaster.errors import JQError

# Modules in the order of the help; what they declare as commands is found.
MODULES = (
    "processes enqueue jobs why find change queues bulks failures limits schedules webhooks workers stats top "
    "doctor bench copying settings access made acl completion"
).split()
_INTERRUPTED, _PIPE = 130, 141
_WHERE = ("--url", "--redis", "--namespace", "--form", "--key-file")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given or is_yes(os.environ.get("JQ_JSON", ""))
    try:
        options = build().parse_args(_in_order(given))
        check_environment(options)
        if not hasattr(options, "log_format"):  # what has --log-format runs for long, and sees to it
            level = logging.DEBUG if options.verbose else logging.WARNING
            form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
            logging.basicConfig(level=level, format=form, stream=sys.stderr)
        code = _run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE
    except Exception as error:
        return failed(error, as_json=as_json)


def _run(options: Options) -> int:
    which = options.which
    if not which.asks:
        return int(which.run(options))
    with client_of(place(options, into=which.into), creates=which.creates) as client:
        return tell(which.run(client, options), as_json=options.json)


def _in_order(arguments: Sequence[str]) -> list[str]:
    """With the options of all commands that stand in front of the command behind it, where they belong."""
    if arguments[:1] == ["--version"]:
        return ["version"]
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


def build() -> Parser:
    """The whole tree of commands."""
    parser = Parser(prog="jqmaster", description="JQ, a job queue on Redis.", epilog=EPILOG)
    parser.declare("-v --verbose  log more, to stderr\n--version     print the version, and end")
    parser.set_defaults(root=parser)
    for family in _families():
        parser.add(*family)
    return parser


@cache
def _families() -> list[list[Command]]:
    """All that modules declare: each command, with its verbs behind it."""
    families: dict[str, list[Command]] = {}
    for name in MODULES:
        module = importlib.import_module(f"jqmaster.cli.{name}")
        for function in vars(module).values():
            if getattr(function, "__module__", "") == module.__name__:
                for one in getattr(function, "commands", ()):
                    families.setdefault(one.name.split()[0], []).append(one)
    return list(families.values())


def failed(error: Exception, *, as_json: bool = False) -> int:
    """Say what went wrong, and give its exit code. Raises what can only be a fault of ours."""
    path, message = None, str(error)
    if isinstance(error, JQError):
        code, path = error.code, error.path
        # `id: there is no …`: which option that was is plain.
        is_plain = path in ("id", "name", "worker", "queue") and code in ("NOTFOUND", "CONFLICT")
        message = f"{path}: {error.message}" if path and not is_plain else error.message or code
    elif isinstance(error, Refused):
        code = error.code
    elif isinstance(error, TimeoutError):
        code, message = "TIMEOUT", message or "the time is up"
    elif isinstance(error, OSError):
        code = "FAILED"
        if error.filename is not None and error.strerror:
            message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ValueError):
        code = "INVALID"
    else:
        raise error
    if isinstance(error, Misused) and not as_json:
        # The usage of a command with many options would hide what is wrong.
        print(f"{error.prog}: {message}\nSee {error.prog} --help", file=sys.stderr)
        return EXIT_USAGE
    complain(message, code, path, as_json=as_json)
    return CODES.get(code, EXIT_FAILED)
