"""`schedules`, and its verbs: recurring jobs."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import (
    Parser,
    choice,
    command,
    duration,
    moment,
    positive,
    reach,
    span,
    verbs,
    whole,
)
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK

_SET = """\
Replaces a schedule whole. ARGUMENT is JSON, @FILE or -, as for enqueue; SPEC
has the job's other fields: '{"queue": "mail", "max_retry": 3}'."""
# What a schedule's document has beside what it was given.
_TOLD = ("id", "argument", "made", "next_ms", "last_ms", "last_id", "job", "next")


def add(commands: Any) -> None:
    parser = reach(command(commands, "schedules", _list, "list recurring jobs; set, pause, delete them"))
    under = verbs(parser)
    shown = reach(command(under, "show", _show, "show a schedule, and when it comes next"), nested=True)
    shown.add_argument("id", metavar="ID")
    shown.option("--next", type=whole(0, 100), default=5, metavar="N", help="moments to come (default: %(default)s)")
    _add_set(under)
    for name, text in (("pause", "let moments pass without jobs"), ("resume", "make jobs again")):
        verb = reach(command(under, name, _pause, text), nested=True)
        verb.set_defaults(paused=name == "pause")
        verb.add_argument("ids", metavar="ID", nargs="+")
    delete = reach(command(under, "delete", _delete, "delete schedules; jobs they made stay"), nested=True)
    delete.add_argument("ids", metavar="ID", nargs="+")


def _add_set(under: Any) -> None:
    setting = reach(command(under, "set", _set, "create a recurring job, or replace it", _SET), nested=True)
    setting.add_argument("id", metavar="ID")
    setting.add_argument("name", metavar="NAME", help="the job's name")
    setting.add_argument("argument", metavar="ARGUMENT", nargs="?", help="JSON, @FILE or - (default: nil)")
    setting.option("--every", type=span, metavar="TIME", help="again and again after so long: 30s, 5m, 1d")
    setting.option("--offset", type=duration, metavar="TIME", help="with --every: so long behind its multiples")
    setting.option("--cron", metavar="FIELDS", help="'0 3 * * *', '*/10 8-17 * * mon-fri', @daily")
    setting.option(
        "--utc-offset",
        type=whole(-1440, 1440),
        metavar="MINUTES",
        help="with --cron: its clock is so far ahead of UTC",
    )
    setting.option("--timezone", metavar="ZONE", help="with --cron: whose clocks it is about: Europe/Berlin")
    setting.option("--start", type=moment, metavar="MOMENT", help="not before")
    setting.option("--end", type=moment, metavar="MOMENT", help="not after")
    setting.option("--limit", type=positive, metavar="N", help="so many jobs in all")
    setting.option(
        "--catch-up", type=choice("one", "all", "none"), metavar="one|all|none",
        help="when several moments passed unseen (default: one)",
    )  # fmt: skip
    setting.option("--backlog", type=positive, metavar="N", help="with --catch-up all: at most so many")
    setting.option("--job", metavar="SPEC", help="JSON: the other fields of the job")
    setting.option("--paused", action="store_true", help="make no jobs yet")


def rhythm(one: dict[str, Any]) -> str:
    """`every 5 min`, or the cron fields."""
    if one.get("every"):
        offset = f" + {show.duration(one['offset'])}" if one.get("offset") else ""
        return f"every {show.duration(one['every'])}{offset}"
    if one.get("tz"):
        return f"{one['cron']} {one.get('timezone') or one['tz']}"
    minutes = one.get("utc_offset")
    zone = f" UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60}:{abs(minutes) % 60:02d}" if minutes else ""
    return f"{one.get('cron')}{zone}"


def _list(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        schedules = client.schedules(next=1 if options.json else None)
    if options.json:
        values.print_lines(schedules)
        return EXIT_OK
    now = show.now_ms()
    table = show.Table(
        [show.Column("SCHEDULE", shrinks=1), show.Column("WHEN", shrinks=2), show.Column("JOB", shrinks=1),
         show.Column("MADE", right=True), show.Column("LAST"), show.Column("NEXT")]
    )  # fmt: skip
    for one in schedules:
        following: Any = show.when(one.get("next_ms"), now)
        if one.get("paused"):
            following = ("paused", "yellow")
        elif not one.get("next_ms"):
            following = ("never", "red")
        table.add(
            one["id"], rhythm(one), one["job"]["name"], show.some(one["made"]),
            show.when(one.get("last_ms"), now),            following,
        )  # fmt: skip
    table.print("no schedules")
    return EXIT_OK


def _show(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        one = client.schedule_there(options.id, next=options.next)
    if options.json:
        values.print_json(one)
        return EXIT_OK
    now = show.now_ms()
    last = f"{show.clock(one['last_ms'])}, {show.when(one['last_ms'], now)}" if one.get("last_ms") else None
    show.facts(
        [("schedule", one["id"]), ("when", rhythm(one)),
         ("paused", ("yes", "yellow") if one.get("paused") else None),
         ("job", values.as_json(one["job"])), ("argument", values.as_json(one.get("argument"))),
         ("catch up", one.get("catch_up")), ("made", show.counted(one["made"], "job")), ("last", last),
         ("last job", one.get("last_id"))]
    )  # fmt: skip
    for number, moment_ms in enumerate(one.get("next") or []):
        print(f"{'next' if not number else '':8}  {show.clock(moment_ms)}, {show.when(moment_ms, now)}")
    if not one.get("next") and options.next and not one.get("paused"):
        print("next      never")
    return EXIT_OK


def _set(options: argparse.Namespace, parser: Parser) -> int:
    if (options.every is None) == (options.cron is None):
        parser.error("give --every or --cron")
    job = values.parsed(options.job, "--job") if options.job else {}
    if not isinstance(job, dict):
        parser.error("--job: expected a JSON object")
    argument = values.NIL if options.argument is None else values.packed(values.source(options.argument))
    names = ("every", "offset", "cron", "utc_offset", "timezone", "start", "end", "limit", "catch_up", "backlog")
    when = {name: getattr(options, name) for name in names}
    with open_client(options, creates=True) as client:
        one = client.set_schedule(
            options.id, {**job, "name": options.name}, argument, when | {"paused": options.paused or None}
        )
    if options.json:
        values.print_json(one)
    else:
        comes = f", next {show.clock(one['next_ms'])}, {show.when(one['next_ms'])}" if one.get("next_ms") else ""
        paused = ", paused" if one.get("paused") else ""
        print(f"{show.plain(one['id'])}: {rhythm(one)}{comes}{paused}")
    return EXIT_OK


def _pause(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for schedule_id in options.ids:
            one = client.schedule_there(schedule_id)
            when = {name: value for name, value in one.items() if name not in _TOLD}
            argument = client.serializer.dumps(one.get("argument"))
            after = client.set_schedule(schedule_id, one["job"], argument, when | {"paused": options.paused})
            if options.json:
                values.print_json(after)
            elif options.paused:
                print(f"{show.plain(schedule_id)} is paused")
            else:
                print(f"{show.plain(schedule_id)} goes on, next {show.when(after.get('next_ms')) or 'never'}")
    return EXIT_OK


def _delete(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for schedule_id in options.ids:
            client.unschedule(schedule_id)
            if options.json:
                values.print_json({"deleted": schedule_id})
            else:
                print(f"deleted {show.plain(schedule_id)}")
    return EXIT_OK
