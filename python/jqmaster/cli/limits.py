"""`constraints`, and its verbs: limits, how much of each is in use, and holding them closed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, Several, choice, command, duration, positive, reach, span, verbs
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK, EXIT_USAGE, Refused

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

_SET = """\
MATCH is JSON, @FILE or -: '{"name": "mail.*", "argument.size": {"lt": 1000}}'
(docs/protocol.md, section 7, has all of it). Replaces a constraint whole, and
says what it was."""
_KEYS_LOOKED_AT = 5000


def add(commands: Any) -> None:
    parser = reach(command(commands, "constraints", _list, "list limits; set, delete, hold them"))
    under = verbs(parser)
    shown = reach(command(under, "show", _show, "show a constraint, and its keys in use"), nested=True)
    shown.add_argument("id", metavar="ID")
    shown.option("--limit", type=positive, default=20, metavar="N", help="keys at most (default: %(default)s)")
    setting = reach(command(under, "set", _set, "create a constraint, or replace it", _SET), nested=True)
    setting.add_argument("id", metavar="ID")
    setting.add_argument("match", metavar="MATCH")
    setting.option(
        "--by", action=Several, metavar="PATH",
        help="each value found there has room of its own; up to four of these",
    )  # fmt: skip
    setting.option("--concurrency", type=positive, metavar="N", help="so many run at once")
    setting.option("--rate", metavar="N/TIME", help="so many starts in any such time: 100/60s, 5/1h")
    setting.option("--smooth", action="store_true", help="starts of the rate are evenly apart")
    setting.option("--cost", metavar="NUMBER|PATH", help="what a start counts against the rate")
    setting.option(
        "--order",
        type=choice("strict"),
        metavar="strict",
        help="one after the other, also when one fails",
    )
    delete = reach(command(under, "delete", _delete, "delete constraints; what they held is free"), nested=True)
    delete.add_argument("ids", metavar="ID", nargs="+")
    hold = reach(command(under, "hold", _hold, "start nothing under a constraint for a while"), nested=True)
    hold.add_argument("id", metavar="ID")
    hold.add_argument("seconds", metavar="TIME", type=duration, help="90, 5m, 2h; 0 opens it")
    hold.option("--by", metavar="JSON", help="which key of it: 4711, '\"text\"', a list of values")


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
        return None, f"{show.count(one['running'])} in {show.counted(one['keys'], 'key')}"
    if one.get("concurrency"):
        return one["running"] / one["concurrency"], f"{show.count(one['running'])}/{show.count(one['concurrency'])}"
    if one.get("rate") and one.get("starts") is not None:
        return one["starts"] / one["rate"]["limit"], f"{one['starts']:g}/{show.count(one['rate']['limit'])}"
    return None, f"{show.count(one['running'])} run"


def table(
    constraints: list[dict[str, Any]], now: int, keys: Mapping[str, list[dict[str, Any]]] | None = None
) -> show.Table:
    """The constraints, as people see them; also in `top`. `keys`: of those with `by`, the keys in use."""
    made, columns = _table(constraints, now, keys or {}, bar=8), show.screen_width()
    if columns is None:
        return made
    # A bar says less than what it would push out; what a constraint matches may be cut all the same.
    needed = show.Table(made.columns[:-1], [row[:-1] for row in made.rows])
    is_wide = any(show.width(line) > columns for line in needed.lines(None))
    return _table(constraints, now, keys or {}, bar=0) if is_wide else made


def _table(
    constraints: list[dict[str, Any]], now: int, keys: Mapping[str, list[dict[str, Any]]], bar: int
) -> show.Table:
    made = show.Table(
        [show.Column("CONSTRAINT", shrinks=1), show.Column("LIMIT", shrinks=1),
         show.Column("FOR EACH", shrinks=2), show.Column("IN USE"),
         show.Column("HELD", right=True, colour="yellow"), show.Column("OPENS"),
         show.Column("MATCH", shrinks=3, optional=True)]
    )  # fmt: skip
    for one in constraints:
        share, text = use(one)
        in_use = f"{show.bar(share, bar)} {text}" if bar and share is not None else text
        colour = None if share is None else "red" if share >= 1 else "green"
        of_it = keys.get(one["id"], [])
        held = one.get("held") or sum(key.get("held") or 0 for key in of_it)
        made.add(
            one["id"], _limit(one), _by(one), (in_use, colour), show.some(held),
            _opens(one, now) or _keys_open(of_it, now), values.as_json(one["match"]),
        )  # fmt: skip
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


def _list(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.errors import NotFound

    with open_client(options) as client:
        constraints = client.constraints()
        if options.json:
            values.print_lines(constraints)
            return EXIT_OK
        keys, left = {}, _KEYS_LOOKED_AT
        for one in constraints:
            if one.get("by") is not None and 0 < one["keys"] <= left:
                left -= one["keys"]
                try:
                    keys[one["id"]] = client.usage(one["id"])
                except NotFound:
                    continue
    table(constraints, show.now_ms(), keys).print("no constraints")
    return EXIT_OK


def _show(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        one = client.constraint(options.id)
        keys = client.usage(options.id)
    if options.json:
        values.print_json({**one, "usage": keys})
        return EXIT_OK
    now = show.now_ms()
    share, text = use(one)
    show.facts(
        [("constraint", one["id"]), ("match", values.as_json(one["match"])), ("limit", limit_text(one)),
         ("cost", one.get("cost")), ("in use", text if share is None else f"{show.bar(share)} {text}")]
    )  # fmt: skip
    busiest = sorted(keys, key=lambda key: (-key["running"], -(key.get("held") or 0), -(key.get("hold_ms") or 0)))[
        : options.limit
    ]
    made = show.Table(
        [show.Column("KEY", shrinks=1), show.Column("RUN", right=True), show.Column("STARTS", right=True),
         show.Column("HELD", right=True, colour="yellow"), show.Column("OPENS")]
    )  # fmt: skip
    for key in busiest:
        made.add(
            values.as_json(key["by"]) if "by" in key else "(all)", show.count(key["running"]),
            f"{key['starts']:g}" if key.get("starts") is not None else "", show.some(key.get("held") or 0),
            _opens(key, now),
        )  # fmt: skip
    if busiest:
        print()
    made.print()
    if len(keys) > options.limit:
        print(show.paint(f"… and {show.counted(len(keys) - options.limit, 'key')} more; --limit", "dim"))
    return EXIT_OK


def _set(options: argparse.Namespace, parser: Parser) -> int:
    if options.concurrency is None and options.rate is None:
        parser.error("give --concurrency or --rate, or both")
    if options.smooth and options.rate is None:
        parser.error("--smooth is about a rate: give --rate as well")
    match = _match(options.match)
    by = options.by[0] if options.by and len(options.by) == 1 else options.by
    with open_client(options) as client:
        before = _before(client, options.id)
        one = client.constrain(
            options.id, match, by=by, concurrency=options.concurrency, rate=_rate(options),
            cost=_cost(options.cost), order=options.order or None,
        )  # fmt: skip
    if options.json:
        values.print_json(one)
    else:
        done = "created" if before is None else "replaced"
        print(f"{done} {show.plain(one['id'])}: {_whole(one)}")
        if before is not None and _whole(before) != _whole(one):
            print(f"  it was: {_whole(before)}")
    return EXIT_OK


def _whole(one: dict[str, Any]) -> str:
    return show.plain(f"{limit_text(one)}, of jobs that match {values.as_json(one['match'])}")


def _before(client: Client, constraint_id: str) -> dict[str, Any] | None:
    from jqmaster.errors import Invalid, NotFound

    try:
        return client.constraint(constraint_id)
    except (Invalid, NotFound):
        return None


def _match(text: str) -> dict[str, Any]:
    """A matcher. Raises Refused; a bare word is most likely the name of jobs."""
    stripped = text.strip()
    is_word = bool(stripped) and "\n" not in stripped and stripped[0] not in '{[@-"0123456789'
    match = None if is_word else values.parsed(text, "MATCH")
    if not isinstance(match, dict):
        name = stripped if is_word else match if isinstance(match, str) else "send_mail"
        example = values.as_json({"name": name})
        raise Refused(f"MATCH: expected a map of conditions, such as '{example}'; got {text}", EXIT_USAGE, "INVALID")
    return match


def _rate(options: argparse.Namespace) -> dict[str, Any] | None:
    if options.rate is None:
        return None
    number, _, period = options.rate.partition("/")
    try:
        rate: dict[str, Any] = {
            "limit": positive(number),
            "period": span(period if period[:1].isdigit() or not period else f"1{period}"),
        }
    except argparse.ArgumentTypeError:
        raise Refused(
            f"--rate {options.rate}: expected N/TIME, such as 100/60s, 20/s or 5/1h", EXIT_USAGE, "INVALID"
        ) from None
    return rate | ({"smooth": True} if options.smooth else {})


def _cost(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _delete(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for constraint_id in options.ids:
            client.unconstrain(constraint_id)
            if options.json:
                values.print_json({"deleted": constraint_id})
            else:
                print(f"deleted {show.plain(constraint_id)}")
    return EXIT_OK


def _hold(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.errors import Invalid

    by = {} if options.by is None else {"by": values.parsed(options.by, "--by")}
    with open_client(options) as client:
        try:
            until_ms = client.hold(options.id, options.seconds, **by)
        except Invalid as error:
            is_by = error.path == "by" or error.message.startswith("by: ")
            paths = client.constraint(options.id).get("by") if is_by else None
            if paths is None:
                raise
            which = f"constraint {options.id} has a key for each {_by({'by': paths})}"
            if options.by is None:
                raise Refused(f"{which}: say with --by which one", EXIT_USAGE, "INVALID") from None
            raise Refused(f"--by: {error.message.removeprefix('by: ')}; {which}", EXIT_USAGE, "INVALID") from None
    if options.json:
        values.print_json({"until_ms": until_ms})
        return EXIT_OK
    name = options.id if options.by is None else f"{options.id} (key {values.as_json(by['by'])})"
    if options.seconds:
        print(f"{show.plain(name)} is on hold until {show.clock(until_ms)}, {show.when(until_ms)}")
    else:
        print(f"{show.plain(name)} is not on hold")
    return EXIT_OK
