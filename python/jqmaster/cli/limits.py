"""`limits`: how many jobs may run or start, how much of each is in use, and holding them closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from jqmaster.cli import kinds, show, values
from jqmaster.cli.declared import given, options_of, verb
from jqmaster.cli.kinds import Duration, between, option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Refused, Replies
from jqmaster.errors import Invalid, NotFound
from jqmaster.manifest.manifest import operations

limits = App(name="limits")
_BUSIEST = 100  # keys of a limit that one call tells, at most
if TYPE_CHECKING:
    Options = Any
else:
    _NAMES = ("by", "concurrency", "cost")
    Options = options_of(map(operations()["constrain"].argument, _NAMES))
Id = Annotated[str, Parameter(name="ID")]


def limit_text(one: dict[str, Any]) -> str:
    """`5 at once, 100 in 60 s for each argument.customer`."""
    rate = one.get("rate")
    parts = [
        f"{show.count(one['concurrency'])} at once" if one.get("concurrency") else "",
        f"{show.count(rate['limit'])} in {show.duration(rate['period'])}" if rate else "",
    ]
    by = one.get("by") or ""
    return ", ".join(filter(None, parts)) + (
        f" for each {by if isinstance(by, str) else ' and '.join(by)}" if by else ""
    )


def _use(one: dict[str, Any]) -> tuple[str, str | None]:
    """How much of a limit is in use."""
    if one.get("by") is not None:
        full = f", {_least(one, 'full')} full" if one.get("full") else ""
        return f"{show.count(one['running'])} in {show.counted(one['keys'], 'key')}{full}", None
    used, most = one["running"], one.get("concurrency")
    if not most and one.get("rate") and one.get("starts") is not None:
        used, most = one["starts"], one["rate"]["limit"]
    return (f"{used:g}/{show.count(most)}", "red" if used >= most else "green") if most else (f"{used} run", None)


def _least(one: dict[str, Any], field: str) -> str:
    """A sum over keys; with a `+` where not all was looked at."""
    is_part = one.get("by") is not None and (one.get("more") or one.get("looked", one["keys"]) < one["keys"])
    return f"{show.count(one.get(field) or 0)}+" if is_part else show.count(one[field]) if one.get(field) else ""


def table(found: list[dict[str, Any]]) -> show.Table:
    now, rows = show.now_ms(), []
    for one in found:
        held = _least(one, "held") if "held" in one else ""
        opens = _opens(one, now)
        holds = [key["hold_ms"] for key in one.get("busiest") or () if (key.get("hold_ms") or 0) > now]
        if holds and not opens:
            opens = f"{show.counted(len(holds), 'key')} {show.when(max(holds), now)} (hold)"
        rows.append({**one, "limit": limit_text(one), "use": _use(one), "held": held, "opens": opens})
    columns = "LIMIT=id|AT MOST~=limit|IN USE=use|HELD>=held:yellow|OPENS=opens|MATCH~=match"
    return show.Table(columns, rows, empty="no limits")


def _opens(key: dict[str, Any], now: int) -> str:
    """When a key opens, and whether that is because somebody said so."""
    hold, opens = key.get("hold_ms") or 0, key.get("opens_ms") or 0
    if hold > now:
        return f"{show.when(hold, now)} (hold)"
    return show.when(opens, now) if opens > now else ""


@limits.default
def limits_() -> Replies:
    """List limits and how much of each is in use.

    A + says that not all keys of a limit were looked at.
    """
    found = list(connect().each("constraints", busiest=_BUSIEST))
    yield found, table(found)


@limits.command(name="show")
def show_(
    id_: Id, /, *, keys: Annotated[int, option("how many of its fullest keys"), between(0, _BUSIEST)] = 20
) -> Replies:
    """Show a limit, and the fullest of its keys. `jqmaster call usage` tells all of them."""
    one, now = connect().there("constraints", id_, busiest=keys), show.now_ms()

    def shown() -> None:
        rows = [
            {**key, "by": values.as_json(key.get("by")), "opens": _opens(key, now)} for key in one.pop("busiest", ())
        ]
        queues = [f"{name} {show.count(held)}" for name, held in one.get("queues") or ()]
        show.facts(
            {**one, "limit": limit_text(one), "in use": _use(one), "held": _least(one, "held"), "queues": queues}
        )
        if rows:
            print()
            show.Table("KEY~=by|RUN>=running|STARTS>=starts|HELD>=held:yellow|OPENS=opens", rows).print()

    yield one, shown


@limits.command(name="set")
def _set(
    id_: Id,
    match: Annotated[str, option("JSON, @FILE or -: which jobs")],
    /,
    *,
    rate: Annotated[str | None, option("starts in any period: 100/60s, 5/h")] = None,
    by: Annotated[list[str] | None, option("a path: each value there has its own limit; up to four")] = None,
    options: Options = None,
) -> Replies:
    """Create a limit, or replace the one of this id; prints what it was.

    MATCH: '{"name": "mail.*", "argument.size": {"lt": 1000}}' (docs/limits.md has all of it).
    """
    fields = given(options)
    if "concurrency" not in fields and rate is None:
        raise Refused("give --concurrency or --rate, or both", "INVALID")
    if rate is not None:
        fields["rate"] = _rate(rate)
    if by:
        fields["by"] = by[0] if len(by) == 1 else by
    matcher, client = matcher_of(match), connect()
    try:
        before = client.there("constraints", id_)
    except (Invalid, NotFound):
        before = None
    one = client.call("constrain", id_, matcher, **fields)
    lines = [f"{'created' if before is None else 'replaced'} {one['id']}: {_whole(one)}"]
    if before is not None and _whole(before) != _whole(one):
        lines.append(f"  it was: {_whole(before)}")
    yield one, "\n".join(lines)


def _whole(one: dict[str, Any]) -> str:
    return f"{limit_text(one)}, of jobs that match {values.as_json(one['match'])}"


def matcher_of(text: str) -> dict[str, Any]:
    """A matcher. Raises Refused; a bare word is most likely the name of jobs."""
    stripped = text.strip()
    is_word = bool(stripped) and "\n" not in stripped and stripped[0] not in '{[@"0123456789'
    match = None if is_word else values.parsed(text, "MATCH")
    if not isinstance(match, dict):
        name = stripped if is_word else match if isinstance(match, str) else "send_mail"
        example = values.as_json({"name": name})
        raise Refused(f"MATCH: expected a map of conditions, such as '{example}'; got {text}", "INVALID")
    return match


def _rate(text: str) -> dict[str, Any]:
    number, _, period = text.partition("/")
    try:
        return {
            "limit": int(number),
            "period": kinds.span(period if period[:1].isdigit() or not period else f"1{period}"),
        }
    except ValueError:
        raise Refused(f"--rate {text}: expected N/TIME, such as 100/60s, 20/s or 5/1h", "INVALID") from None


limits.command(verb("unconstrain", "Delete limits; what they held is free.", "deleted {name}"), name="delete")


@limits.command
def hold(
    id_: Id,
    seconds: Annotated[Duration, option("90, 5m, 2h; 0 opens it")],
    /,
    *,
    by: Annotated[str | None, option("JSON: which key of it: 4711, '\"text\"', a list of values")] = None,
) -> Replies:
    """Put a limit on hold for a while."""
    until_ms = connect().call("hold", id_, seconds, **({} if by is None else {"by": values.parsed(by, "--by")}))
    name = id_ if by is None else f"{id_} (key {by})"
    yield {"until_ms": until_ms}, f"{name} {f'is on hold until {show.both(until_ms)}' if seconds else 'is not on hold'}"
