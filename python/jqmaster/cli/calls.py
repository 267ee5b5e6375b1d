"""`call`: everything that JQ can do, by its name; `completion`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal

from cyclopts import App

from jqmaster.cli import values
from jqmaster.cli.declared import is_positional, rendered, taking
from jqmaster.cli.reach import Destination, connect
from jqmaster.cli.status import Replies
from jqmaster.manifest.contract import SERVER, Argument, Operation
from jqmaster.manifest.manifest import operations

_TAKEN = {field.name for field in fields(Destination)}
_ALL = Argument(name="all", type="flag", optional=True, meaning="all pages")
_CALLED = {name: operation for name, operation in operations().items() if SERVER not in operation.roles}

call = App(
    name="call",
    help="Call an operation by its name. It asks nothing: what is named is done.",
)
for _name, _operation in _CALLED.items():
    call.command(f"{__name__}:call_{_name}", name=_name, help=_operation.summary)


def __getattr__(name: str) -> Callable[..., Replies]:
    """The function of a command, made when it is asked for."""
    operation = _CALLED.get(name.removeprefix("call_"))
    if operation is None:
        raise AttributeError(name)
    return _command(operation)


def _command(operation: Operation) -> Callable[..., Replies]:
    taken = [argument for argument in operation.arguments if argument.name != "actor"]
    names = [argument.name for argument in taken if is_positional(argument)]
    pages = [_ALL] if any(argument.name == "cursor" for argument in taken) else []

    @taking([*taken, *pages], {name: f"--{operation.name}-{name}" for name in _TAKEN})
    def run(*positional: Any, **more: Any) -> Replies:
        is_all = more.pop("all", False)
        client = connect()
        given = dict(zip(names, positional, strict=False)) | more
        arguments = _with_values(operation, given, client.serializer.dumps)
        has_said = False
        while True:
            reply = client.call(operation.name, **arguments)
            cursor = getattr(reply, "cursor", "")
            goes_on = bool(cursor and is_all)
            document, seen = rendered(reply, operation.reply(given).of)
            if document or not (goes_on or has_said):  # that there is nothing is said once, of all pages
                yield document, seen
                has_said = True
            if not goes_on:
                break
            arguments["cursor"] = cursor
        if cursor:
            print(f"jqmaster: there is more: --all, or --cursor {cursor}", file=sys.stderr)

    return run


def _with_values(operation: Operation, arguments: dict[str, Any], dumps: Callable[[Any], bytes]) -> dict[str, Any]:
    """What stands in a job's spec on the command line as its `argument` goes behind it."""
    for name in [position[:-3] for position in operation.positions if position == "jobs..."]:
        none = values.NIL if operation.name == "enqueue" else b""
        arguments[name] = [(job, dumps(job.pop("argument")) if "argument" in job else none) for job in arguments[name]]
    return arguments


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell.

    bash: source <(jqmaster completion bash) in ~/.bashrc. zsh: the same in ~/.zshrc, behind compinit. fish: jqmaster
    completion fish | source in config.fish.
    """
    from jqmaster.cli.run import build

    print(build().generate_completion(shell=shell), end="")
