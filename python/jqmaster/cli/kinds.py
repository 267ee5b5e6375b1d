"""Kinds of values on the command line: how each is read, and what help calls it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from math import nan
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

State = Literal["queued", "scheduled", "blocked", "retrying", "running", "done", "error", "cancelled", "skipped"]


def option(text: str, variable: str | None = None, **more: Any) -> Parameter:
    """What help says of an option; the variable it has, where that is not made of its command's name and its own.
    `more`: as of cyclopts' Parameter."""
    return Parameter(help=text, env_var=variable, **more)


def between(least: float, most: float) -> Parameter:
    return Parameter(validator=Number(gte=least, lte=most))


def kind(read: Callable[[str], Any], metavar: str) -> Parameter:
    """`read` raises ValueError for what is none."""
    return Parameter(converter=lambda _type, tokens: read(tokens[0].value), metavar=metavar, n_tokens=1)


_UNITS = {"ms": 0.001, "s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_UNITS |= {"d": 86400, "day": 86400, "w": 604800}


def duration(text: str) -> float:
    """Seconds, or a number with a unit: 90, 1.5s, 5m, 2h, 1d."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "s"
    try:
        seconds = float(number) * _UNITS.get(unit, nan)
    except ValueError:
        seconds = nan
    if not 0 <= seconds <= 1e10:
        raise ValueError(f"expected seconds, or a number with ms, s, m, h, d or w, got {text!r}")
    return seconds


def span(text: str) -> float:
    """A duration of more than 0."""
    if not (seconds := duration(text)):
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
        example = "2030-01-31T18:00 or 2030-01-31T18:00Z"
        raise ValueError(f"expected a moment such as {example}, or Unix seconds, got {text!r}") from None


def names(text: str) -> list[str]:
    """Several, with commas between."""
    if not all(found := text.split(",")):
        raise ValueError(f"expected names with commas between, got {text!r}")
    return found


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses, or networks such as 10.0.0.0/8, with commas between."""
    return tuple(ip_network(network.strip()) for network in text.split(","))


def _namespace(text: str) -> str:
    from jqmaster.engine.scripts import check_namespace

    return check_namespace(text)


def _secrets(text: str) -> tuple[str, ...]:
    from jqmaster.server.signing import secrets_of

    return secrets_of(text)


def _push_to(text: str) -> Any:
    from jqmaster.server.egress import Egress

    return Egress(text)


Duration = Annotated[float, kind(duration, "TIME")]
Span = Annotated[float, kind(span, "TIME")]
Moment = Annotated[float, kind(moment, "MOMENT")]
Names = Annotated[list[str], kind(names, "NAMES")]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], kind(networks, "NETWORKS")]
Namespace = Annotated[str, kind(_namespace, "{NAME}")]
Secrets = Annotated[tuple[str, ...], kind(_secrets, "SECRETS")]
PushTo = Annotated[Any, kind(_push_to, "NETWORKS")]
Port = Annotated[int, between(0, 65535), Parameter(metavar="PORT")]
Count = Annotated[int, between(1, 1_000_000_000), Parameter(metavar="N")]
