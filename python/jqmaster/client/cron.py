"""Whether a cron expression can be: what the engine (jqlua/schedules/cron.lua) is to say, said where it stands."""

from __future__ import annotations

import re
from typing import NamedTuple


class _CronField(NamedTuple):
    name: str
    least: int
    most: int
    names: str = ""  # the first stands for `least`


_FIELDS = (
    _CronField("second", 0, 59),
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of month", 1, 31),
    _CronField("month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"),
    _CronField("day of week", 0, 7, "sun mon tue wed thu fri sat"),
)
_NAMED = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
_ENTRY = re.compile(r"(?:\*|([^/*-]+)(?:-([^/*-]+))?)(?:/(\d\d?))?", re.ASCII)
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def check(text: str) -> None:
    """Raise ValueError for what is no expression, or names a day that never comes."""
    fields = text.lower().split()
    if len(fields) == 1 and fields[0] in _NAMED:
        return
    if len(fields) == len(_FIELDS) - 1:
        fields.insert(0, "0")
    if len(fields) != len(_FIELDS):
        raise ValueError(f"cron {text!r}: expected five fields or six, or one of {', '.join(sorted(_NAMED))}")
    *_, days, months, _ = (_values(part, field) for part, field in zip(fields, _FIELDS, strict=True))
    is_either = fields[3][0] != "*" and fields[5][0] != "*"
    if not is_either and min(days) > max(_LONGEST[month - 1] for month in months):
        raise ValueError(f"cron {text!r}: there is no such day")


def _values(text: str, field: _CronField) -> set[int]:
    numbers: set[int] = set()
    for entry in text.split(","):
        values = _span(entry, field)
        if not values:
            raise ValueError(f"cron: {field.name} {text!r} is not understood")
        numbers.update(values)
    return numbers


def _span(entry: str, field: _CronField) -> range:
    """The values of one entry of a list; none when it cannot be."""
    match = _ENTRY.fullmatch(entry)
    if match is None or not 1 <= int(match[3] or 1) <= field.most:
        return range(0)
    low = field.least if match[1] is None else _number(match[1], field)
    last = match[2] or (None if match[1] is None or match[3] else match[1])
    high = field.most if last is None else _number(last, field)
    if field.most == 7 and match[2] and high == 0 and low:
        high = 7  # sat-sun
    return range(0) if low is None or high is None else range(low, high + 1, int(match[3] or 1))


def _number(text: str, field: _CronField) -> int | None:
    names = field.names.split()
    if text in names:
        return names.index(text) + field.least
    value = int(text) if re.fullmatch(r"[0-9]{1,2}", text) else -1
    return value if field.least <= value <= field.most else None
