"""Time zones by name, as rules that Redis can follow: it has no data of zones."""

from __future__ import annotations

import io
import struct
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jqmaster.errors import Invalid

_HEADER = struct.Struct(">5s15x6L")
_CHECKED = timedelta(days=731)
_STEP = timedelta(hours=6)


def with_rule(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule's fields, with the rule `tz` of its `timezone` where only that is given. Raises Invalid."""
    name = spec.get("timezone")
    return dict(spec) if name is None or spec.get("tz") is not None else {**spec, "tz": rule(name)}


def rule(name: Any) -> str:
    """By which rule the clocks of a zone, such as `Europe/Berlin`, are changed from now on, in the form of POSIX'
    variable TZ: `CET-1CEST,M3.5.0,M10.5.0/3`. It is the last line of the zone's data (RFC 8536).

    Raises Invalid, of `timezone`: it is unknown here, or its clocks follow no such rule.
    """
    try:
        zone = zoneinfo.ZoneInfo(name)
        found = _data(name).rstrip(b"\n").rpartition(b"\n")[2].decode("ascii")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        about = "" if zoneinfo.available_timezones() else ": this machine has no data of zones (pip install tzdata)"
        raise Invalid(
            f"expected a zone such as Europe/Berlin that is known here, got {str(name)[:100]!r}{about}", "timezone"
        ) from None
    if not found or not _is_followed(zone, found):
        raise Invalid(f"the clocks of {name} do not follow the same rule every year; give tz", "timezone")
    return found


def _data(name: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        file = Path(folder, name)
        if file.is_file():
            return file.read_bytes()
    from importlib import resources  # only then: it takes a megabyte

    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def _is_followed(zone: zoneinfo.ZoneInfo, found: str) -> bool:
    """Whether a zone's next years are what the rule says; there are those with changes of their own."""
    empty = _HEADER.pack(b"TZif2", 0, 0, 0, 0, 0, 0) + _HEADER.pack(b"TZif2", 0, 0, 0, 0, 1, 1) + bytes(7)
    by_rule = zoneinfo.ZoneInfo.from_file(io.BytesIO(empty + f"\n{found}\n".encode()))
    now = datetime.now(UTC)
    moments = (now + _STEP * n for n in range(_CHECKED // _STEP))
    return all(at.astimezone(zone).utcoffset() == at.astimezone(by_rule).utcoffset() for at in moments)
