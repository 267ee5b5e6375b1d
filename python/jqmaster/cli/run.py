"""From the arguments to an exit code: which commands there are, and what is said when one fails."""

from __future__ import annotations

import importlib
import json
import keyword
import os
import sys
from collections.abc import Generator, Sequence
from typing import Annotated

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError
from cyclopts.config import Env

from jqmaster.cli.reach import LOCAL, Destination, current, tell
from jqmaster.cli.status import CODES, EXIT_FAILED, EXIT_OK, Refused
from jqmaster.connection.url import without_passwords
from jqmaster.errors import JQError, Unauthorized

_EPILOGUE = f"""\
Where to ask: what the command line says, else JQ_URL, else JQ_REDIS, else the server at {LOCAL}.

Each option has a variable: --role of `keys create` is JQ_KEYS_CREATE_ROLE. NO_COLOR turns colours off.

Exit codes: 0 all well; 1 refused, failed, or something is wrong; 2 wrong usage or value; 3 no such job, queue, …; \
4 the server or Redis cannot be used; 5 the time is up; 6 the job's result is gone; 130 interrupted; 141 the reader of \
the output has gone."""

# In the order of the help: modules, and the commands that each has.
COMMANDS = {
    "Run": {"processes": "serve work load"},
    "Jobs": {"enqueue": "enqueue", "jobs": "jobs job result", "why": "why", "act": "retry cancel discard kick"},
    "Operate": {"lists": "queues limits schedules workers failures stats", "top": "top", "doctor": "doctor"},
    "Administer": {
        "lists": "config keys", "acl": "acl", "copying": "export import", "calls": "call completion",
    },
}  # fmt: skip
# What they are called elsewhere: "did you mean".
_SYNONYMS = {"jobs": ("find", "search"), "job": ("get", "history"), "why": ("explain",), "limits": ("constraints",)}
_INTERRUPTED, _PIPE = 130, 141


def build(only: str | None = None) -> App:
    """All commands, or one of them: to import them all takes as long as some take to run."""
    app = App(
        name="jqmaster",
        help="JQ, a job queue on Redis.",
        help_epilogue=_EPILOGUE if only is None else None,
        help_format="plaintext",
        version_flags=(),
        config=Env("JQ_", show=False),
        default_parameter=Parameter(negative=(), show_default=lambda value: str(value) if value else None),
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    app.meta.config = ()  # of where to ask: what was said wins over all variables
    for place, (title, modules) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for module, names in modules.items():
            for name in names.split():
                if only in (None, name):
                    found = importlib.import_module(f"jqmaster.cli.{module}")
                    command = getattr(found, f"{name}_" if keyword.iskeyword(name) else name)
                    if not isinstance(command, App):
                        made = App(name=name)
                        made.default(command)
                        command = made
                    command.group, command.synonym = group, _SYNONYMS.get(name, ())
                    app.command(command)
    app.meta.default(_runner(app))
    return app


def _runner(app: App):  # type: ignore[no-untyped-def]
    def run(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)], where: Destination | None = None
    ) -> int:
        where = where or Destination()
        token = current.set(where)
        try:
            with where.stack:
                result = app(tokens)
                return tell(result) if isinstance(result, Generator) else int(result or EXIT_OK)
        finally:
            current.reset(token)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    names = {name for modules in COMMANDS.values() for words in modules.values() for name in words.split()}
    try:
        app = build(next((word for word in given if word in names), None))
        # `-` alone looks like an option to cyclopts: `values.STDIN`.
        code = int(app.meta(["@-" if word == "-" else word for word in given]) or EXIT_OK)
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE
    except Exception as error:
        return failed(error, as_json="--json" in given or os.environ.get("JQ_JSON", "") in ("1", "true", "yes"))


def failed(error: Exception, *, as_json: bool = False) -> int:
    """Say what went wrong, and give its exit code. Raises what can only be a fault of ours."""
    path, message, code = None, str(error), "FAILED"
    if isinstance(error, CycloptsError):
        code, message = "INVALID", _misused(error)
    elif isinstance(error, Unauthorized):
        code = error.code
        message = f"{error.message.partition(': ')[0]}: give one that is good in JQ_KEY, or --key-file FILE"
    elif isinstance(error, JQError):
        code, path = error.code, error.path
        # `id: there is no …`: which option that was is plain.
        is_plain = path in ("id", "name", "worker", "queue") and code in ("NOTFOUND", "CONFLICT")
        message = f"{path}: {error.message}" if path and not is_plain else error.message or code
    elif isinstance(error, Refused):
        code = error.code
    elif isinstance(error, TimeoutError):
        code, message = "TIMEOUT", message or "the time is up"
    elif isinstance(error, OSError):
        if error.filename is not None and error.strerror:
            message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ValueError):
        code = "INVALID"
    else:
        raise error
    complain(message, code, path, as_json=as_json)
    return CODES.get(code, EXIT_FAILED)


def _misused(error: CycloptsError) -> str:
    """What is wrong with the command line, and whose help tells more."""
    message = str(error).replace("invalid literal for int() with base 10:", "expected an integer, got")
    if not message.endswith("..."):
        message = message.removesuffix(".")
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        message = f"unexpected argument: {error.unused_tokens[0]}"
    return f"{message}\nSee {' '.join(['jqmaster', *(error.command_chain or ())])} --help"


def complain(message: str, code: str, path: str | None = None, *, as_json: bool) -> None:
    """On stderr: for people, or with --json for scripts."""
    from jqmaster.cli.show import plain

    message = without_passwords(message)
    error = {"code": code, "message": message} | ({"path": path} if path else {})
    lines = "\n".join(map(plain, message.splitlines()))
    shown = json.dumps({"error": error}) if as_json else f"jqmaster: {lines}"
    print(shown, file=sys.stderr, flush=True)
