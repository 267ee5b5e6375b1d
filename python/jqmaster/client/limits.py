"""Limits as programs say them: which jobs, and how many of them; checked where they stand, as far as that can be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from jqmaster.client.task import Task
from jqmaster.engine import options
from jqmaster.engine.options import Limits, known

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/limits.md), or a task, which stands for its name."""


class LimitOptions(Limits, total=False):
    """And the `id` of a declared one; default: the task's name."""

    id: str | None


class Declared(NamedTuple):
    """A limit that a program declares."""

    match: Match
    limits: Limits


def declare(declared: dict[str, Declared], match: Match, options: LimitOptions) -> None:
    """Put a limit among those that are known. Raises TypeError or ValueError for one that cannot be."""
    matcher_of(match)
    own = {**options}
    limit_id = own.pop("id", None) or (match.name if isinstance(match, Task) else None)
    if not isinstance(limit_id, str):
        raise TypeError("give the limit an id: jq.limit({...}, id='per-customer', concurrency=5)")
    limits = limits_of(own)
    if limit_id in declared:
        raise ValueError(f"there is a limit {limit_id!r} already; give this one another id")
    declared[limit_id] = Declared(match, limits)


def matcher_of(match: Match) -> Mapping[str, Any]:
    """Raises TypeError for what is none."""
    if isinstance(match, Task):
        return {"name": match.name}
    if callable(match):
        raise TypeError("expected a task, or a matcher; @jq.limit(...) goes above @jq.job")
    if not isinstance(match, Mapping):
        name = match if isinstance(match, str) else "send_mail"
        raise TypeError(f"match is a map of conditions, such as {{'name': {name!r}}}, or a task; got {match!r}")
    return match


def limits_of(options: Mapping[str, Any]) -> Limits:
    """Limits as the engine takes them. Raises TypeError for an option that does not exist."""
    named = known(options, Limits, "option of a limit")
    limits: Limits = with_seconds({name: value for name, value in named.items() if value is not None})
    return limits


def with_seconds(value: Any) -> Any:
    """With seconds instead of every `timedelta`, also inside of maps: `rate={"period": timedelta(…)}`."""
    if isinstance(value, Mapping):
        return {name: with_seconds(part) for name, part in value.items()}
    return options.seconds(value) if isinstance(value, timedelta) else value
