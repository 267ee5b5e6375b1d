"""`constraints`, and its verbs: limits, how much of each is in use, and holding them closed."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import kinds, show, values
from jqmaster.cli.options import Client, Misused, Options, Replies, asks
from jqmaster.cli.status import Refused
from jqmaster.errors import Invalid, NotFound

_BUSIEST = 100  # keys of a constraint that one call tells, at most


def limit_text(one: dict[str, Any]) -> str:
    """`5 at once, 100 in 60 s for each argument.customer`."""
    return _limit(one) + (f" for each {_by(one)}" if _by(one) else "")


def _limit(one: dict[str, Any]) -> str:
    parts = []
    if one.get("concurrency"):
        parts.append(f"{show.count(one['concurrency'])} at once")
    rate = one.get("rate")
    if rate:
        parts.append(f"{show.count(rate['limit'])} in {show.duration(rate['period'])}")
    if one.get("order"):
        parts.append(str(one["order"]))
    return ", ".join(parts)


def _by(one: dict[str, Any]) -> str:
    by = one.get("by")
    return "" if by is None else by if isinstance(by, str) else " and ".join(by)


def use(one: dict[str, Any]) -> tuple[float | None, str]:
    """How much of a constraint is in use: a part of 1 if it has one key, and as text."""
    if one.get("by") is not None:
        full = f", {_least(one, 'full')} full" if one.get("full") else ""
        return None, f"{show.count(one['running'])} in {show.counted(one['keys'], 'key')}{full}"
    if one.get("concurrency"):
        return one["running"] / one["concurrency"], f"{show.count(one['running'])}/{show.count(one['concurrency'])}"
    if one.get("rate") and one.get("starts") is not None:
        return one["starts"] / one["rate"]["limit"], f"{one['starts']:g}/{show.count(one['rate']['limit'])}"
    return None, f"{show.count(one['running'])} run"


def _least(one: dict[str, Any], field: str) -> str:
    """A sum over keys; with a `+` where not all was looked at."""
    is_part = one.get("more") or one.get("looked", one["keys"]) < one["keys"]
    number = one.get(field) or 0
    return f"{show.count(number)}+" if is_part and one.get("by") is not None else show.some(number)


def table(constraints: list[dict[str, Any]], now: int) -> show.Table:
    """The constraints, as people see them; also in `top`."""
    made, columns = _table(constraints, now, bar=8), show.screen_width()
    # A bar says less than what it would push out; what a constraint matches may be cut all the same.
    needed = show.Table(made.columns[:-1], [row[:-1] for row in made.rows])
    is_wide = columns is not None and any(show.width(line) > columns for line in needed.lines(None))
    return _table(constraints, now, bar=0) if is_wide else made


def _table(constraints: list[dict[str, Any]], now: int, bar: int) -> show.Table:
    columns = "CONSTRAINT~1 | LIMIT~1 | FOR EACH~2 | IN USE | HELD>:yellow | OPENS | MATCH~3?"
    made = show.Table(columns, empty="no constraints")
    for one in constraints:
        share, text = use(one)
        in_use = f"{show.bar(share, bar)} {text}" if bar and share is not None else text
        colour = None if share is None else "red" if share >= 1 else "green"
        held = _least(one, "held") if "held" in one else ""
        opens = _opens(one, now) or _keys_open(one.get("busiest") or [], now)
        made.add(one["id"], _limit(one), _by(one), (in_use, colour), held, opens, values.as_json(one["match"]))
    return made


def _opens(key: dict[str, Any], now: int) -> str:
    """When a key opens, and whether that is because somebody said so."""
    hold, opens = key.get("hold_ms") or 0, key.get("opens_ms") or 0
    if hold > now:
        return f"{show.soon(hold, now)} (hold)"
    return show.soon(opens, now) if opens > now else ""


def _keys_open(keys: list[dict[str, Any]], now: int) -> str:
    """Of a constraint with `by`: those of its keys that are on hold."""
    holds = [key["hold_ms"] for key in keys if (key.get("hold_ms") or 0) > now]
    return f"{show.counted(len(holds), 'key')} {show.soon(max(holds), now)} (hold)" if holds else ""


@asks("""constraints
list limits; set, delete, hold them
""")
def _list(client: Client, options: Options) -> Replies:
    constraints = client.constraints(busiest=_BUSIEST)
    yield constraints, table(constraints, show.now_ms())


@asks("""constraints show
show a constraint, and its keys in use, the fullest first

id ID
--limit N=20  keys at most
--key PREFIX  only keys whose value begins so
""")
def _show(client: Client, options: Options) -> Replies:
    one = client.there("constraints", options.id, busiest=_BUSIEST)
    busiest = one.pop("busiest", None)
    if options.key is not None or options.json or busiest is None or _BUSIEST < options.limit < one["keys"]:
        busiest = client.usage(options.id, prefix=options.key)
    total = len(busiest) if options.key is not None else one["keys"]
    yield {**one, "usage": busiest}, lambda: _print(one, busiest, total, options.limit)


def _print(one: dict[str, Any], keys: list[dict[str, Any]], total: int, limit: int) -> None:
    now = show.now_ms()
    share, text = use(one)
    show.facts(
        {
            "constraint": one["id"],
            "match": values.as_json(one["match"]),
            "limit": limit_text(one),
            "cost": one.get("cost"),
            "expires": show.both(one.get("expires_ms"), now),
            "in use": text if share is None else f"{show.bar(share)} {text}",
            "held": f"{_least(one, 'held')} jobs" if one.get("held") else None,
            "queues": ", ".join(f"{name} {show.count(held)}" for name, held in one["queues"]) or None,
        }
    )
    busiest = sorted(keys, key=lambda key: (-(key.get("held") or 0), -key["running"], -(key.get("hold_ms") or 0)))
    made = show.Table("KEY~1 | RUN> | STARTS> | HELD>:yellow | OPENS")
    for key in busiest[:limit]:
        name = values.as_json(key["by"]) if "by" in key else "(all)"
        starts = f"{key['starts']:g}" if key.get("starts") is not None else ""
        made.add(name, show.count(key["running"]), starts, show.some(key.get("held") or 0), _opens(key, now))
    if total > limit:
        looked = one.get("looked", total)
        part = f"; these are the fullest of {show.count(looked)} that were looked at" if looked < one["keys"] else ""
        made.more = f"… and {show.counted(total - limit, 'key')} more; --limit{part}"
    if keys:
        print()
    made.print()


@asks("""constraints set
create a constraint, or replace it
MATCH is JSON, @FILE or -: '{"name": "mail.*", "argument.size": {"lt": 1000}}'
(docs/protocol.md, section 7, has all of it). Replaces a constraint whole, and
says what it was.

id ID
match MATCH
--by PATH...        each value found there has room of its own; up to four of these
--concurrency N     so many run at once
--rate N/TIME       so many starts in any such time: 100/60s, 5/1h
--smooth            starts of the rate are evenly apart
--cost NUMBER|PATH  what a start counts against the rate
--order strict      one after the other, also when one fails
--expires-in TIME   it is deleted after so long
""")
def _set(client: Client, options: Options) -> Replies:
    if options.concurrency is None and options.rate is None:
        raise Misused(options.parser.prog, "give --concurrency or --rate, or both")
    if options.smooth and options.rate is None:
        raise Misused(options.parser.prog, "--smooth is about a rate: give --rate as well")
    match, rate = matcher(options.match), _rate(options)
    by = options.by[0] if options.by and len(options.by) == 1 else options.by
    try:
        before = client.there("constraints", options.id)
    except (Invalid, NotFound):
        before = None
    one = client.constrain(
        options.id,
        match,
        by=by,
        concurrency=options.concurrency,
        rate=rate,
        cost=_cost(options.cost),
        order=options.order or None,
        expires_in=options.expires_in,
    )
    said = f"{'created' if before is None else 'replaced'} {one['id']}: {_whole(one)}"
    if before is not None and _whole(before) != _whole(one):
        said += f"\n  it was: {_whole(before)}"
    yield one, said


def _whole(one: dict[str, Any]) -> str:
    return show.plain(f"{limit_text(one)}, of jobs that match {values.as_json(one['match'])}")


def matcher(text: str) -> dict[str, Any]:
    """A matcher. Raises Refused; a bare word is most likely the name of jobs."""
    stripped = text.strip()
    is_word = bool(stripped) and "\n" not in stripped and stripped[0] not in '{[@-"0123456789'
    match = None if is_word else values.parsed(text, "MATCH")
    if not isinstance(match, dict):
        name = stripped if is_word else match if isinstance(match, str) else "send_mail"
        example = values.as_json({"name": name})
        raise Refused(f"MATCH: expected a map of conditions, such as '{example}'; got {text}", "INVALID")
    return match


def _rate(options: Options) -> dict[str, Any] | None:
    if options.rate is None:
        return None
    number, _, period = options.rate.partition("/")
    try:
        rate: dict[str, Any] = {
            "limit": kinds.positive(number),
            "period": kinds.span(period if period[:1].isdigit() or not period else f"1{period}"),
        }
    except ValueError:
        raise Refused(f"--rate {options.rate}: expected N/TIME, such as 100/60s, 20/s or 5/1h", "INVALID") from None
    return rate | ({"smooth": True} if options.smooth else {})


def _cost(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


@asks("""constraints delete
delete constraints; what they held is free

ids ID...
""")
def _delete(client: Client, options: Options) -> Replies:
    for constraint_id in options.ids:
        client.unconstrain(constraint_id)
        yield {"deleted": constraint_id}, f"deleted {constraint_id}"


@asks("""constraints hold
start nothing under a constraint for a while

id ID
seconds TIME  90, 5m, 2h; 0 opens it
--by JSON     which key of it: 4711, '"text"', a list of values
""")
def _hold(client: Client, options: Options) -> Replies:
    by = {} if options.by is None else {"by": values.parsed(options.by, "--by")}
    try:
        until_ms = client.hold(options.id, options.seconds, **by)
    except Invalid as error:
        is_by = error.path == "by" or error.message.startswith("by: ")
        paths = client.there("constraints", options.id).get("by") if is_by else None
        if paths is None:
            raise
        which = f"constraint {options.id} has a key for each {_by({'by': paths})}"
        if options.by is None:
            raise Refused(f"{which}: say with --by which one", "INVALID") from None
        raise Refused(f"--by: {error.message.removeprefix('by: ')}; {which}", "INVALID") from None
    name = options.id if options.by is None else f"{options.id} (key {values.as_json(by['by'])})"
    is_held = f"is on hold until {show.both(until_ms)}" if options.seconds else "is not on hold"
    yield {"until_ms": until_ms}, f"{name} {is_held}"
