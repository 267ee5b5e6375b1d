"""What a job can be told beside its arguments, and the spec that comes of it (docs/operations.md, NewJob)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from jqmaster.engine.keywords import Bounds, Changes, JobOptions, Limits, Reference, When, Where

__all__ = ["Bounds", "Changes", "JobOptions", "Limits", "Reference", "When", "Where"]

Seconds = float | timedelta
Given = TypeVar("Given", bound=Mapping[str, Any])


class NewJob(NamedTuple):
    """A job on its way to the engine: its spec, its argument packed."""

    spec: dict[str, Any]
    argument: bytes


def known(given: Given, kind: type, what: str = "option", beside: Iterable[str] = ()) -> Given:
    """`given` as it is, which type checkers need not have seen. Raises TypeError for a name that `kind`, a TypedDict,
    does not have; `beside`: what else could have been meant. All else the engine checks."""
    for name in sorted(given.keys() - kind.__annotations__.keys()):
        names = sorted({*kind.__annotations__, *beside})
        raise TypeError(f"no such {what}: {name}{meant(name, names)}; there are: {', '.join(names)}")
    return given


def meant(name: str, known: Iterable[str]) -> str:
    """`, did you mean …?`, or nothing."""
    import difflib  # only who is wrong needs it, and its memory

    close = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {close[0]}?" if close else ""


def spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A job's options as its spec has them, but for `unique` and `depends` where they are not plain text yet. Raises
    ValueError for a time without zone."""
    spec = {name: value for name, value in options.items() if value is not None}
    if "run_at" in spec:
        spec["run_at"] = unix(spec["run_at"])
    return spec


def unix(moment: datetime | float) -> float:
    """Unix seconds. Raises ValueError for a datetime without time zone, which could mean any moment."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; say datetime.now(timezone.utc), or .astimezone()")
    return moment.timestamp()
