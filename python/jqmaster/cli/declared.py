"""Commands and options made of what the heads of scripts say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import make_dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from jqmaster.cli import show, values
from jqmaster.cli.kinds import Duration, Moment, between, kind, moment, option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Replies
from jqmaster.manifest.contract import Argument
from jqmaster.manifest.types import Type


def _where(text: str) -> Any:
    from jqmaster.engine.queryline import where_of

    return values.parsed(text, "the filter") if text.startswith(("{", "@")) else where_of(text, show.now_ms())


Where = Annotated[object, kind(_where, "LINE|JSON")]
_TYPES: dict[str, Any] = {
    **dict.fromkeys("text name queue worker job state actor token cursor url secret zone".split(), str),
    "integer": int,
    "ms": int,
    "number": float,
    "seconds": Duration,
    "moment": Moment,
    "moment_ms": Annotated[int, kind(lambda text: round(moment(text) * 1000), "MOMENT")],
    "flag": bool,
    "value": Annotated[bytes, kind(values.argument, "JSON")],
    "Where": Where,
}
_JSON = Annotated[object, kind(lambda text: values.parsed(text, "the value"), "JSON")]


def _type(of: Type) -> Any:
    """How the command line takes it; what has no form of its own is JSON."""
    if of.kind == "choice":
        return Literal[of.words]
    if of.kind == "list" and of.of is not None and (of.of.kind == "choice" or _TYPES.get(of.of.name) is str):
        return list[_type(of.of)]  # type: ignore[misc]
    return _TYPES.get(of.name, _JSON)


def _annotated(argument: Argument, name: str | None) -> Any:
    usual = "" if argument.default in (None, False, "nil") else f"; default: {argument.default}"
    several = "; may be given several times" if argument.of.kind == "list" else ""
    made: Any = Annotated[_type(argument.of), option(argument.meaning + several + usual, name=name)]
    if argument.of.name in ("integer", "number") and argument.least is not None:
        made = Annotated[made, between(argument.least, float("inf") if argument.most is None else argument.most)]
    return made


def options_of(arguments: Iterable[Argument], flags: Mapping[str, str] | None = None) -> Any:
    """A type that has an option for each argument, or None where none of them has to be given; `flags`: those that are
    not called as it is."""
    fields: list[Any] = []
    for argument in arguments:
        made = _annotated(argument, (flags or {}).get(argument.name, f"--{argument.name.replace('_', '-')}"))
        fields.append((argument.name, made) if is_needed(argument) else (argument.name, made | None, None))
    result: Any = make_dataclass("Options", fields, kw_only=True)
    result.__module__ = __name__  # where cyclopts looks for a class that is no builtin
    return Annotated[result if any(len(field) == 2 for field in fields) else result | None, Parameter(name="*")]


def is_needed(argument: Argument) -> bool:
    return not argument.optional and argument.default is None


def given(options: Any) -> dict[str, Any]:
    """Those that were given: 0, "" and false (`--paused=false`) are values."""
    return {name: value for name, value in vars(options).items() if value is not None} if options else {}


def told(reply: Any) -> tuple[Any, Any]:
    """An operation's reply, for programs and for people."""
    reply = getattr(reply, "documents", reply)
    if hasattr(reply, "_asdict"):
        reply = reply._asdict()
    if isinstance(reply, Mapping):
        return reply, lambda: show.facts(reply)
    if isinstance(reply, list) and all(isinstance(one, Mapping) for one in reply):
        return reply, show.Table("", reply)
    if isinstance(reply, list):
        return reply, "\n".join(one if isinstance(one, str) else values.as_json(one) for one in reply)
    return [reply], "done" if reply is None else reply if isinstance(reply, str) else values.as_json(reply)


def verb(operation: str, text: str, done: str, **fixed: Any) -> Callable[..., Replies]:
    """A command that does the same to each of those named. `done` is said of each, with its name and the reply."""

    def run(*names: str) -> Replies:
        client = connect()
        for name in names:
            reply = client.call(operation, name, **fixed)
            yield {"id": name, "reply": reply}, done.format(name=name, reply=reply)

    run.__doc__ = text
    return run
