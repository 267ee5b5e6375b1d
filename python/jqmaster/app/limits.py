"""Limits as programs say them: which jobs, and how many of them; checked where they stand, as far as that can be."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from jqmaster.app.task import Task
from jqmaster.engine import options
from jqmaster.engine.options import Limits, known

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/protocol.md, section 7), or a task, which stands for its name."""

_OF_RATE = ("limit", "period", "smooth")


class LimitOptions(Limits, total=False):
    """And the `id` of a declared one; default: the task's name."""

    id: str | None


class Declared(NamedTuple):
    """A limit that a program declares."""

    match: Match
    limits: Limits


def declare(declared: dict[str, Declared], match: Match, given: LimitOptions) -> None:
    """Put a limit among those that are known. Raises TypeError or ValueError for one that cannot be."""
    matcher_of(match)
    own = {**given}
    limit_id = own.pop("id", None) or (match.name if isinstance(match, Task) else None)
    if not isinstance(limit_id, str):
        raise TypeError("give the limit an id: jq.limit({...}, id='per-customer', concurrency=5)")
    limits = limits_of(match, own)
    _check_values(limits)
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


def limits_of(match: Match, given: Mapping[str, Any]) -> Limits:
    """Limits as the engine takes them. Raises TypeError for an option that does not exist, ValueError for a path that
    leads to no parameter of the task."""
    named = known(given, Limits, "option of a limit")
    limits = with_seconds({name: value for name, value in named.items() if value is not None})
    if isinstance(match, Task):
        for name, path in _paths(limits):
            _check_path(match, name, path)
    return limits  # type: ignore[no-any-return]


def with_seconds(value: Any) -> Any:
    """With seconds instead of every `timedelta`, also inside of maps: `rate={"period": timedelta(…)}`."""
    if isinstance(value, Mapping):
        return {name: with_seconds(one) for name, one in value.items()}
    return options.seconds(value) if isinstance(value, timedelta) else value


def _check_values(limits: Limits) -> None:
    """What Redis would refuse when a worker brings it, too late for who wrote it."""
    concurrency, rate = limits.get("concurrency"), limits.get("rate")
    if concurrency is None and rate is None:
        raise ValueError("a limit needs concurrency, rate or both; got neither")
    if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
        raise ValueError(f"concurrency: expected an integer of at least 1, got {concurrency!r}")
    if rate is None:
        return
    if not isinstance(rate, Mapping) or not {"limit", "period"} <= rate.keys() <= set(_OF_RATE):
        raise ValueError(f"rate: expected a map {{'limit': starts, 'period': seconds}}, also 'smooth'; got {rate!r}")
    limit, period = rate["limit"], rate["period"]
    if type(limit) is not int or limit < 1:
        raise ValueError(f"rate: expected as limit an integer of at least 1, got {limit!r}")
    if isinstance(period, bool) or not isinstance(period, int | float) or period <= 0:
        raise ValueError(f"rate: expected as period more than 0 seconds, or a timedelta; got {period!r}")


def _paths(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    by = limits.get("by")
    for name, paths in (("by", [by] if isinstance(by, str) else by or ()), ("cost", [limits.get("cost")])):
        yield from ((name, path) for path in paths if isinstance(path, str))


def _check_path(task: Task[..., Any], name: str, path: str) -> None:
    """A path that names no parameter would find nothing: all jobs would share one key."""
    names = None if task.signature is None else task.signature.named
    head, _, rest = path.partition(".")
    parameter = rest.partition(".")[0] if head == "argument" else head
    if names is None or not parameter or (parameter in names and head == "argument"):
        return
    if head != "argument" and head not in names:
        return  # Redis tells what a path is
    close = [parameter] if parameter in names else difflib.get_close_matches(parameter, names, 1)
    meant = f"; did you mean argument.{close[0]}?" if close else ""
    raise ValueError(f"{name}: {path!r} leads to no parameter of {task.name}{task.signature}{meant}")
