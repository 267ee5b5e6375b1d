"""Limits as programs say them: which jobs, and how many of them; checked where they stand, as far as that can be."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from jqmaster.client.task import Task
from jqmaster.engine import options
from jqmaster.engine.options import Limits, check_arguments, known

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/limits.md), or a task, which stands for its name."""

_FACTS = ("name", "queue", "priority")  # of a job, beside its argument


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
    limits = limits_of(match, own)
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


def limits_of(match: Match, options: Mapping[str, Any]) -> Limits:
    """Limits as the engine takes them. Raises TypeError for an option that does not exist, ValueError for a path that
    leads to no parameter of the task."""
    named = known(options, Limits, "option of a limit")
    limits = with_seconds({name: value for name, value in named.items() if value is not None})
    check_arguments("constrain", limits)
    for name, path in _paths(limits):
        _check_path(name, path, match if isinstance(match, Task) else None)
    return limits  # type: ignore[no-any-return]


def with_seconds(value: Any) -> Any:
    """With seconds instead of every `timedelta`, also inside of maps: `rate={"period": timedelta(…)}`."""
    if isinstance(value, Mapping):
        return {name: with_seconds(part) for name, part in value.items()}
    return options.seconds(value) if isinstance(value, timedelta) else value


def _paths(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    by = limits.get("by", [])
    paths = [by] if isinstance(by, str) else by
    if not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"by: expected a path, such as 'argument.customer', or a list of paths; got {by!r}")
    yield from (("by", path) for path in paths)
    if isinstance(limits.get("cost"), str):
        yield "cost", limits["cost"]


def _check_path(name: str, path: str, task: Task[..., Any] | None = None) -> None:
    """A path that leads to no parameter would find nothing: all jobs would share one key."""
    names = None if task is None or task.signature is None else task.signature.named
    head, _, rest = path.partition(".")
    parameter = rest.partition(".")[0] if head == "argument" else head
    if path == "argument" or (name == "by" and path in _FACTS):
        return
    close = difflib.get_close_matches(parameter, names or (), 1)
    meant = f"; did you mean argument.{close[0]}?" if close else ""
    if head != "argument":
        expected = "name, queue, priority, argument or argument.<path>" if name == "by" else "argument.<path>"
        raise ValueError(f"{name}: expected a path: {expected}; got {path!r}{meant}")
    if names is not None and parameter not in names:
        assert task is not None
        raise ValueError(f"{name}: {path!r} leads to no parameter of {task.name}{task.signature}{meant}")
