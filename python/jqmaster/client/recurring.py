"""Whether a schedule can be: what the engine (jqlua/schedules/schedulespec.lua) is to say, said where it stands."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jqmaster.client import cron
from jqmaster.client.task import ScheduleOptions, Task
from jqmaster.engine import zones
from jqmaster.engine.options import seconds, unix
from jqmaster.errors import Invalid

_WITH_CRON = ("utc_offset", "timezone", "tz")
_CATCH_UP = ("one", "all", "none")
_INTEGERS = {"limit": (1, 10**9), "backlog": (1, 1000), "utc_offset": (-1440, 1440)}
_NAMES = {"every", "offset", "cron", *_WITH_CRON, "start", "end", "catch_up", "paused", *_INTEGERS}
_LONGEST_S = 1e9
_LAST = 1e10


def check(task: Task[..., Any], said: ScheduleOptions) -> None:
    """Raise TypeError for what is of another kind, ValueError for what cannot be; both name the field."""
    when: dict[str, Any] = {**said}
    args, kwargs, chosen = when.pop("args", ()), when.pop("kwargs", {}), when.pop("options", {})
    for name, value, kind in (("args", args, list | tuple), ("kwargs", kwargs, Mapping), ("options", chosen, Mapping)):
        if not isinstance(value, kind):
            raise TypeError(f"{name}: expected a {'map' if kind is Mapping else 'tuple'}, got {value!r}")
    _check_when(when)
    task.checked(chosen)
    for name in ("run_at", "depends", "durable"):
        if {**task.chosen, **chosen}.get(name) is not None:
            raise ValueError(f"{name}: the jobs of a schedule cannot have it")
    task.check_arguments(tuple(args), kwargs)


def _check_when(when: Mapping[str, Any]) -> None:
    if unknown := sorted(when.keys() - _NAMES):
        raise TypeError(f"no such option: {', '.join(unknown)}; there are: {', '.join(sorted(_NAMES))}")
    given = {name: value for name, value in when.items() if value is not None}
    if ("every" in given) == ("cron" in given):
        raise ValueError(f"expected either every or cron, got {'both' if 'cron' in given else 'neither'}")
    others = _WITH_CRON if "every" in given else ("offset",)
    for name in others:
        if name in given:
            raise ValueError(f"{name}: only valid with {'cron' if 'every' in given else 'every'}")
    if "every" in given:
        _check_between("every", seconds(given["every"], "every"), 0.1, _LONGEST_S)
        _check_between("offset", seconds(given.get("offset", 0), "offset"), 0, seconds(given["every"]))
    else:
        _check_cron(given)
    _check_limits(given)


def _check_cron(given: Mapping[str, Any]) -> None:
    for name in ("cron", "timezone", "tz"):
        if not isinstance(given.get(name, ""), str):
            raise TypeError(f"{name}: expected text, got {given[name]!r}")
    cron.check(given["cron"])
    if "utc_offset" in given and ("timezone" in given or "tz" in given):
        raise ValueError("utc_offset: expected either utc_offset or timezone, got both")
    if "timezone" in given and "tz" not in given and (problem := _problem_of_zone(given["timezone"])):
        raise ValueError(f"timezone: {problem}")


@functools.cache
def _problem_of_zone(name: str) -> str | None:
    """None where this machine knows no zones at all: then a master looks it up."""
    try:
        zones.rule(name)
    except Invalid as error:
        return error.message if zoneinfo.available_timezones() else None
    return None


def _check_limits(given: Mapping[str, Any]) -> None:
    for name, (least, most) in _INTEGERS.items():
        if name in given:
            if not isinstance(given[name], int) or isinstance(given[name], bool):
                raise TypeError(f"{name}: expected an integer, got {given[name]!r}")
            _check_between(name, given[name], least, most)
    moments: dict[str, float] = {}
    for name in ("start", "end"):
        if name in given:
            if not isinstance(given[name], datetime):
                seconds(given[name], name, "a datetime with a time zone, or Unix seconds")
            moments[name] = unix(given[name], name)
            _check_between(name, moments[name], 0, _LAST)
    if moments.get("end", _LAST) < moments.get("start", 0):
        raise ValueError(f"end: expected a moment not before start ({given['start']}), got {given['end']}")
    if given.get("catch_up", "one") not in _CATCH_UP:
        raise ValueError(f"catch_up: expected one of {', '.join(_CATCH_UP)}, got {given['catch_up']!r}")
    if not isinstance(given.get("paused", False), bool):
        raise TypeError(f"paused: expected true or false, got {given['paused']!r}")


def _check_between(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least:.12g} to {most:.12g}, got {value!r}")
