"""What a job can be told beside its arguments, and the spec that comes of it (docs/operations.md, NewJob)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from jqmaster.engine.keywords import Bounds, Changes, JobOptions, Limits, Reference, When, Where
from jqmaster.manifest.fields import FIELDS

__all__ = ["Bounds", "Changes", "JobOptions", "Limits", "Reference", "When", "Where"]

Seconds = float | timedelta
Given = TypeVar("Given", bound=Mapping[str, Any])


class NewJob(NamedTuple):
    """A job on its way to the engine: its spec, its argument packed."""

    spec: dict[str, Any]
    argument: bytes


def known(given: Given, kind: type, what: str = "option") -> Given:
    """`given` as it is, which type checkers need not have seen. Raises TypeError for a name that `kind`, a TypedDict,
    does not have."""
    for name in sorted(given.keys() - kind.__annotations__.keys()):
        names = sorted(kind.__annotations__)
        raise TypeError(f"no such {what}: {name}{meant(name, names)}; there are: {', '.join(names)}")
    return given


def meant(name: str, known: Iterable[str]) -> str:
    """`, did you mean …?`, or nothing."""
    import difflib  # only who is wrong needs it, and its memory

    close = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {close[0]}?" if close else ""


def check(options: JobOptions, of: str = "") -> JobOptions:
    """`options` as they were given, which type checkers need not have seen. Raises TypeError for a name that is
    none, and for what is no duration or list, ValueError for a datetime without time zone; `of` whom they are. All
    else the engine checks."""
    try:
        _sent(known(options, JobOptions))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{of}: {error}" if of else str(error)) from None
    return options


def several(value: Any, name: str) -> list[Any]:
    """A list. Raises TypeError for one alone: text is a list of letters, too."""
    if isinstance(value, str | bytes | Reference | Mapping) or not isinstance(value, Collection):
        raise TypeError(f"{name}: expected a list, such as [{value!r}], got {value!r}")
    return list(value)


def spec_of(name: str, options: JobOptions) -> dict[str, Any]:
    """The spec, but for `unique` and `depends` where they are not plain text yet."""
    return {"name": name, **_sent(options)}


def changes_of(changes: Changes, dumps: Callable[[Any], bytes]) -> tuple[dict[str, Any], bytes]:
    """The spec of a change, but for the id, and the argument, which is empty where it stays."""
    spec = _sent(known(changes, Changes))
    spec.pop("argument", None)
    return spec, dumps(changes["argument"]) if "argument" in changes else b""


def _sent(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _SENT_AS[name](value, name) if name in _SENT_AS else value
        for name, value in options.items()
        if value is not None
    }


def seconds(duration: Any, name: str = "duration") -> float:
    """A duration in seconds. Raises TypeError for what is none."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(f"{name}: expected seconds or a timedelta, got {duration!r}")
    return duration


def unix(moment: datetime | float, name: str = "") -> float:
    """Unix seconds. Raises ValueError for a datetime without time zone, which could mean any moment."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        about = f"{name}: " if name else ""
        raise ValueError(f"{about}{moment!r} has no time zone; say datetime.now(timezone.utc), or .astimezone()")
    return moment.timestamp()


_SENDING: Mapping[str, Callable[[Any, str], Any]] = {"seconds": seconds, "moment": unix, "list": several}
_SENT_AS = {
    field.name: _SENDING[kind] for field in FIELDS for kind in [field.of.name or field.of.kind] if kind in _SENDING
}


def when_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """When a schedule makes its jobs, as the engine takes it."""
    when = {name: value for name, value in given.items() if value is not None}
    if "every" in when:
        when["every"] = seconds(when["every"], "every")
    return when
