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


def check(task: Task[..., Any], options: ScheduleOptions) -> None:
    """Raise TypeError for what is of another kind, ValueError for what cannot be; both name the field."""
    when: dict[str, Any] = {**options}
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
    fields = {name: value for name, value in when.items() if value is not None}
    if ("every" in fields) == ("cron" in fields):
        raise ValueError(f"expected either every or cron, got {'both' if 'cron' in fields else 'neither'}")
    others = _WITH_CRON if "every" in fields else ("offset",)
    for name in others:
        if name in fields:
            raise ValueError(f"{name}: only valid with {'cron' if 'every' in fields else 'every'}")
    if "every" in fields:
        _check_between("every", seconds(fields["every"], "every"), 0.1, _LONGEST_S)
        _check_between("offset", seconds(fields.get("offset", 0), "offset"), 0, seconds(fields["every"]))
    else:
        _check_cron(fields)
    _check_limits(fields)


def _check_cron(fields: Mapping[str, Any]) -> None:
    for name in ("cron", "timezone", "tz"):
        if not isinstance(fields.get(name, ""), str):
            raise TypeError(f"{name}: expected text, got {fields[name]!r}")
    cron.check(fields["cron"])
    if "utc_offset" in fields and ("timezone" in fields or "tz" in fields):
        raise ValueError("utc_offset: expected either utc_offset or timezone, got both")
    if "timezone" in fields and "tz" not in fields and (problem := _problem_of_zone(fields["timezone"])):
        raise ValueError(f"timezone: {problem}")


@functools.cache
def _problem_of_zone(name: str) -> str | None:
    """None where this machine knows no zones at all: then a master looks it up."""
    try:
        zones.rule(name)
    except Invalid as error:
        return error.message if zoneinfo.available_timezones() else None
    return None


def _check_limits(fields: Mapping[str, Any]) -> None:
    for name, (least, most) in _INTEGERS.items():
        if name in fields:
            if not isinstance(fields[name], int) or isinstance(fields[name], bool):
                raise TypeError(f"{name}: expected an integer, got {fields[name]!r}")
            _check_between(name, fields[name], least, most)
    moments: dict[str, float] = {}
    for name in ("start", "end"):
        if name in fields:
            if not isinstance(fields[name], datetime):
                seconds(fields[name], name, "a datetime with a time zone, or Unix seconds")
            moments[name] = unix(fields[name], name)
            _check_between(name, moments[name], 0, _LAST)
    if moments.get("end", _LAST) < moments.get("start", 0):
        raise ValueError(f"end: expected a moment not before start ({fields['start']}), got {fields['end']}")
    if fields.get("catch_up", "one") not in _CATCH_UP:
        raise ValueError(f"catch_up: expected one of {', '.join(_CATCH_UP)}, got {fields['catch_up']!r}")
    if not isinstance(fields.get("paused", False), bool):
        raise TypeError(f"paused: expected true or false, got {fields['paused']!r}")


def _check_between(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least:.12g} to {most:.12g}, got {value!r}")
