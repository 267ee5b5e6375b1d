"""Commands and options made of what the heads of scripts say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter as Place
from typing import Annotated, Any, Literal, TypeVar

from jqmaster.cli import show, values
from jqmaster.cli.kinds import Duration, Moment, between, duration, kind, moment, option
from jqmaster.cli.status import Refused
from jqmaster.manifest.contract import Argument, Type

F = TypeVar("F", bound=Callable[..., Any])


def _json(text: str, what: str = "the value") -> Any:
    return values.parsed(text, what)


def _rate(text: str) -> Any:
    """`100/60s`, `5/h`, or JSON."""
    number, _, period = text.partition("/")
    if text.startswith("{"):
        return _json(text)
    if not number.isdigit() or not period:
        raise ValueError(f"expected starts and a period, such as 100/60s, got {text!r}")
    return {"limit": int(number), "period": duration(period if period[0].isdigit() else f"1{period}")}


def _settings(text: str) -> Any:
    """`result_ttl=600,retry_base=5`, or JSON. Raises Refused."""
    if text.startswith("{"):
        return _json(text)
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and value for name, _, value in pairs):
        raise Refused(f"{text}: expected SETTING=VALUE, such as result_ttl=600", "INVALID")
    return {name: value if name == "route" else _json(value, name) for name, _, value in pairs}


def _any(text: str) -> Any:
    """JSON, or text as it is."""
    try:
        return _json(text)
    except Refused:
        if text.startswith(("[", "{", '"')):
            raise
        return text


def _fair(text: str) -> Any:
    """A path, or JSON."""
    return _json(text) if text.startswith("{") else {"by": text} if text else {}


def _job(text: str) -> Any:
    """A job's name, or JSON."""
    return _json(text, "the job") if text.startswith(("{", "@")) else {"name": text}


Where = Annotated[object, kind(lambda text: _json(text, "the filter"), "JSON")]
_SETTINGS = Annotated[object, kind(_settings, "SETTING=VALUE,…|JSON")]
_TYPES: dict[str, Any] = {
    **dict.fromkeys("text name queue worker job state actor token cursor url secret zone".split(), str),
    "integer": Annotated[int, kind(int, "INT")],  # by itself cyclopts rounds
    "ms": int,
    "number": float,
    "seconds": Duration,
    "moment": Moment,
    "moment_ms": Annotated[int, kind(lambda text: round(moment(text) * 1000), "MOMENT")],
    "flag": bool,
    "value": Annotated[bytes, kind(values.argument, "JSON")],
    "Where": Where,
    "Rate": Annotated[object, kind(_rate, "N/TIME|JSON")],
    "OwnSettings": _SETTINGS,
    "ConfigChange": _SETTINGS,
    "By": Annotated[object, kind(_any, "PATH|JSON")],
    "any": Annotated[object, kind(_any, "TEXT|JSON")],
    "Fair": Annotated[object, kind(_fair, "PATH|JSON")],
    "ScheduledJob": Annotated[object, kind(_job, "NAME|JSON")],
}
_JSON = Annotated[object, kind(_json, "JSON")]


def _type(of: Type) -> Any:
    """How the command line takes it; what has no form of its own is JSON."""
    if of.kind == "choice":
        return Literal[of.words]
    if of.kind == "list" and of.of is not None and (of.of.kind == "choice" or _TYPES.get(of.of.name) is str):
        return list[_type(of.of)]  # type: ignore[misc]
    return _TYPES.get(of.name, _JSON)


def _place(argument: Argument, flag: str) -> Place:
    usual = "" if argument.default in (None, False, "nil") else f"default: {argument.default}"
    several = "may be given several times" if argument.of.kind == "list" else ""
    help_text = "; ".join(filter(None, (argument.meaning, several, usual)))
    made: Any = Annotated[_type(argument.of), option(help_text, name=flag)]
    if argument.of.name in ("integer", "number") and argument.least is not None:
        made = Annotated[made, between(argument.least, float("inf") if argument.most is None else argument.most)]
    if is_positional(argument):
        return Place(argument.name, Place.POSITIONAL_OR_KEYWORD, annotation=made)
    if is_needed(argument):
        return Place(argument.name, Place.KEYWORD_ONLY, annotation=made)
    return Place(argument.name, Place.KEYWORD_ONLY, default=None, annotation=made | None)


def is_needed(argument: Argument) -> bool:
    return not argument.optional and argument.default is None


def is_positional(argument: Argument) -> bool:
    """Whether it may stand without its name: a list would take all that follow."""
    return is_needed(argument) and argument.of.kind != "list"


def taking(arguments: Iterable[Argument], flags: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """What a function takes as `**options` are options of its command; those that have to be given may stand without
    their names, too. `flags`: those that are not called as their argument."""

    def decorated(function: F) -> F:
        places = inspect.signature(function).parameters.values()
        own = [place for place in places if place.kind not in (Place.VAR_KEYWORD, Place.VAR_POSITIONAL)]
        named = [(argument, f"--{argument.name.replace('_', '-')}") for argument in arguments]
        made = [_place(argument, (flags or {}).get(argument.name, flag)) for argument, flag in named]
        ordered = sorted([*own, *made], key=lambda place: place.kind)
        function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        return function

    return decorated


def rendered(reply: Any, of: Type) -> tuple[Any, Any]:
    """An operation's reply, for programs and for people. `of`: its type."""
    reply = getattr(reply, "documents", reply)
    if isinstance(reply, list):
        reply = [item._asdict() if hasattr(item, "_asdict") else item for item in reply]
    if hasattr(reply, "_asdict"):
        reply = reply._asdict()
    elif of.kind == "members" and len(of.members) == 1:
        reply = {of.members[0][0]: reply}
    if isinstance(reply, Mapping):
        return reply, lambda: show.facts(reply)
    if isinstance(reply, list) and all(isinstance(item, Mapping) for item in reply):
        return reply, show.Table("", reply)
    if isinstance(reply, list):
        return reply, "\n".join(item if isinstance(item, str) else values.as_json(item) for item in reply)
    return [reply], "done" if reply is None else reply if isinstance(reply, str) else values.as_json(reply)
