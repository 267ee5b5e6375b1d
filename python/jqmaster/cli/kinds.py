"""Kinds of values on the command line: each reads a text, and raises ValueError for one that is none."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    from jqmaster.server.egress import Egress


def namespace(text: str) -> str:
    from jqmaster.engine.scripts import check_namespace

    return check_namespace(text)


def choice(*words: str) -> Callable[[str], str]:
    """One of these; unlike argparse's own `choices`, also when it comes from the environment."""

    def one_of(text: str) -> str:
        if text not in words:
            known = " or ".join(one for one in (", ".join(words[:-1]), words[-1]) if one)
            raise ValueError(f"expected {known}, got {text!r}")
        return text

    one_of.__dict__["words"] = words
    return one_of


form = choice("auto", "functions", "scripts")


def names(text: str) -> list[str]:
    """Several, with commas between."""
    found = text.split(",")
    if not all(found):
        raise ValueError(f"expected names with commas between, got {text!r}")
    return found


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses, or networks such as 10.0.0.0/8, with commas between."""
    from ipaddress import ip_network

    return tuple(ip_network(one.strip()) for one in text.split(","))


def secrets(text: str) -> tuple[str, ...]:
    from jqmaster.server.signing import secrets_of

    return secrets_of(text)


def reach(text: str) -> Egress:
    from jqmaster.server.egress import Egress

    return Egress.of(text)


def _number(text: str) -> float:
    """NaN, which is in no bounds, for what is none."""
    try:
        return float(text)
    except ValueError:
        return nan


def rate(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 1e6:
        raise ValueError(f"expected a number above 0, got {text!r}")
    return value


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number in these bounds."""

    def number(text: str) -> int:
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or int(text) < least:
            raise ValueError(f"expected a whole number of at least {least}, got {text!r}")
        if int(text) > most:
            raise ValueError(f"expected a whole number of at most {most}, got {text!r}")
        return int(text)

    return number


positive = whole(1, 1_000_000_000)

_UNITS = {"ms": 0.001, "s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_UNITS |= {"d": 86400, "day": 86400, "w": 604800}


def duration(text: str) -> float:
    """Seconds, or a number with a unit: 90, 1.5s, 5m, 2h, 1d."""
    stripped = text.strip()
    number = stripped.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = stripped[len(number) :].strip() or "s"
    seconds = _number(number) * _UNITS.get(unit, nan)
    if not 0 <= seconds <= 1e10:
        raise ValueError(f"expected seconds, or a number with ms, s, m, h, d or w, got {text!r}")
    return seconds


def span(text: str) -> float:
    """A duration of more than 0."""
    seconds = duration(text)
    if not seconds:
        raise ValueError(f"expected more than 0 seconds, got {text!r}")
    return seconds


def moment(text: str) -> float:
    """Unix seconds: a number of them, or an ISO 8601 moment; without an offset it is local time."""
    from datetime import datetime

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"expected a moment such as 2030-01-31T18:00 or 2030-01-31T18:00Z, or Unix seconds, got {text!r}"
        ) from None


def fraction(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise ValueError(f"expected a number from 0 to 1, got {text!r}")
    return value
