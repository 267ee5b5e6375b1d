"""`schedules`, and its verbs: recurring jobs."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Misused, Options, Replies, asks
from jqmaster.manifest.manifest import operations

_LEFT = ("id", "job", "argument", "declared", "run", "actor")
_GIVEN = tuple(one.name for one in operations()["schedule"].arguments if one.name not in _LEFT)


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


@asks("""schedules
list recurring jobs; set, run, pause, delete them
""")
def _list(client: Client, options: Options) -> Replies:
    schedules = client.schedules(next=1 if options.json else None)
    now = show.now_ms()
    table = show.Table("SCHEDULE~1 | WHEN~2 | JOB~1 | MADE> | LAST | NEXT", empty="no schedules")
    for one in schedules:
        following: Any = show.when(one.get("next_ms"), now)
        if one.get("paused"):
            following = ("paused", "yellow")
        elif not one.get("next_ms"):
            following = ("never", "red")
        made, last = show.some(one["made"]), show.when(one.get("last_ms"), now)
        table.add(one["id"], rhythm(one), one["job"]["name"], made, last, following)
    yield schedules, table


@asks("""schedules show
show a schedule, and when it comes next

id ID
--next N(0..100)=5  moments to come
--runs N(0..20)=5   jobs that it made last
""")
def _show(client: Client, options: Options) -> Replies:
    one = client.there("schedules", options.id, next=options.next, runs=options.runs)
    yield one, lambda: _print(one, is_asked=options.next > 0)


def _moment(one: dict[str, Any], moment_ms: float | None, now: int) -> str | None:
    """By the clocks that `cron` is about, or those here; which ones is told."""
    if moment_ms is None:
        return None
    zone: tzinfo | None = None
    name = one.get("timezone")
    if name:
        with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
            zone = ZoneInfo(name)
    elif one.get("utc_offset"):
        zone = timezone(timedelta(minutes=one["utc_offset"]))
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone(zone)
    return f"{moment:%Y-%m-%d %H:%M:%S} {name if zone and name else moment.tzname()}, {show.when(moment_ms, now)}"


def _print(one: dict[str, Any], *, is_asked: bool) -> None:
    now = show.now_ms()
    show.facts(
        {
            "schedule": one["id"],
            "when": rhythm(one),
            "paused": ("yes", "yellow") if one.get("paused") else None,
            "job": values.as_json(one["job"]),
            "argument": values.as_json(one.get("argument")),
            "catch up": one.get("catch_up"),
            "made": show.counted(one["made"], "job"),
            "last": _moment(one, one.get("last_ms") or None, now),
            "last job": one.get("last_id"),
            "on its way": show.both(one.get("on_its_way_ms"), now),
        }
    )
    for number, moment_ms in enumerate(one.get("next") or []):
        print(f"{'next' if not number else '':8}  {_moment(one, moment_ms, now)}")
    if not one.get("next") and is_asked and not one.get("paused"):
        print("next      never")
    if one.get("runs"):
        runs = show.Table("RUN | STATE | TOOK> | ENDED")
        for run in one["runs"]:
            status, began_ms, ended_ms = run.get("status"), run.get("started_ms"), run.get("ended_ms")
            took = show.duration((ended_ms - began_ms) / 1000) if began_ms and ended_ms else ""
            runs.add(run["id"], show.state(status) if status else "gone", took, show.when(ended_ms, now))
        print()
        runs.print()


@asks(
    """schedules set
create a recurring job, or replace it
Replaces a schedule whole. ARGUMENT is JSON, @FILE or -, as for enqueue; SPEC
has the job's other fields: '{"queue": "mail", "max_retry": 3}'.

id ID
name NAME                          the job's name
argument ARGUMENT?                 JSON, @FILE or - (default: nil)
--every SPAN                       again and again after so long: 30s, 5m, 1d
--offset TIME                      with --every: so long behind its multiples
--cron FIELDS                      '0 3 * * *', '*/10 8-17 * * mon-fri', @daily
--utc-offset MINUTES(-1440..1440)  with --cron: its clock is so far ahead of UTC
--timezone ZONE                    with --cron: whose clocks it is about: Europe/Berlin
--tz RULE                          with --cron: the rule of those clocks, as POSIX' TZ has it
--start MOMENT                     not before
--end MOMENT                       not after
--limit N                          so many jobs in all
--catch-up one|all|none            when several moments passed unseen (default: one)
--backlog N                        with --catch-up all: at most so many
--job SPEC                         JSON: the other fields of the job
--paused                           make no jobs yet
""",
    creates=True,
)
def _set(client: Client, options: Options) -> Replies:
    if (options.every is None) == (options.cron is None):
        raise Misused(options.parser.prog, "give --every or --cron")
    job = values.parsed(options.job, "--job") if options.job else {}
    if not isinstance(job, dict):
        raise Misused(options.parser.prog, "--job: expected a JSON object")
    when = {name: getattr(options, name) for name in _GIVEN} | {"paused": options.paused or None}
    argument = values.argument(options.argument)
    one = client.set_schedule(options.id, {**job, "name": options.name}, argument, when)
    comes = f", next {_moment(one, one['next_ms'], show.now_ms())}" if one.get("next_ms") else ""
    yield one, f"{one['id']}: {rhythm(one)}{comes}{', paused' if one.get('paused') else ''}"


@asks("""schedules pause
let moments pass without jobs

ids ID...
""")
@asks("""schedules resume
make jobs again

ids ID...
""")
def _pause(client: Client, options: Options) -> Replies:
    paused = options.verb == "pause"
    for schedule_id in options.ids:
        one = client.there("schedules", schedule_id)
        when = {name: one[name] for name in _GIVEN if name in one} | {"paused": paused}
        argument = client.serializer.dumps(one.get("argument"))
        after = client.set_schedule(schedule_id, one["job"], argument, when)
        goes_on = f"goes on, next {show.when(after.get('next_ms')) or 'never'}"
        yield after, f"{schedule_id} {'is paused' if paused else goes_on}"


@asks("""schedules run
make the jobs of schedules at once, beside those of their moments

ids ID...
""")
def _run(client: Client, options: Options) -> Replies:
    for schedule_id in options.ids:
        job_id = client.run_schedule(schedule_id)
        yield {"schedule": schedule_id, "job_id": job_id}, f"{schedule_id} runs now: job {job_id}"


@asks("""schedules delete
delete schedules; jobs they made stay

ids ID...
""")
def _delete(client: Client, options: Options) -> Replies:
    for schedule_id in options.ids:
        client.unschedule(schedule_id)
        yield {"deleted": schedule_id}, f"deleted {schedule_id}"
