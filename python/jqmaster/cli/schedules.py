"""`schedules`: recurring jobs."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cyclopts import App, Parameter

from jqmaster.cli import show, values
from jqmaster.cli.declared import given, options_of, verb
from jqmaster.cli.kinds import between, option
from jqmaster.cli.reach import as_json, connect
from jqmaster.cli.status import Refused, Replies
from jqmaster.manifest.manifest import operations

schedules = App(name="schedules")
_ARGUMENTS = operations()["schedule"].arguments
_WHEN = [one for one in _ARGUMENTS if one.name not in ("id", "job", "argument", "declared", "run", "actor")]
if TYPE_CHECKING:
    Options = Any
else:
    Options = options_of(_WHEN)
Id = Annotated[str, Parameter(name="ID")]


def _rhythm(one: dict[str, Any]) -> str:
    """`every 5 min`, or the cron fields."""
    if one.get("every"):
        return f"every {show.duration(one['every'])}"
    return f"{one.get('cron')} {one.get('timezone') or one.get('tz') or ''}".rstrip()


def _moment(one: dict[str, Any], moment_ms: float) -> str:
    """By the clocks that `cron` is about, or those here; which ones is told."""
    zone: tzinfo | None = None
    if name := one.get("timezone"):
        with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
            zone = ZoneInfo(name)
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone(zone)
    return f"{moment:%Y-%m-%d %H:%M:%S} {name if zone and name else moment.tzname()}, {show.when(moment_ms)}"


@schedules.default
def schedules_() -> Replies:
    """List recurring jobs."""
    found = list(connect().each("schedules", **({"next": 1} if as_json() else {})))
    rows = []
    for one in found:
        following: Any = ("paused", "yellow") if one.get("paused") else ("never", "red")
        if one.get("next_ms") and not one.get("paused"):
            following = show.when(one["next_ms"])
        rows.append({**one, "rhythm": _rhythm(one), "name": one["job"]["name"], "following": following})
    columns = "SCHEDULE~=id|WHEN~=rhythm|JOB~=name|MADE>=made|LAST=last_ms|NEXT=following"
    yield found, show.Table(columns, rows, empty="no schedules")


@schedules.command(name="show")
def show_(
    id_: Id,
    /,
    *,
    next_: Annotated[int, option("show this many coming moments", name="--next"), between(0, 100)] = 5,
    runs: Annotated[int, option("show this many of its last jobs"), between(0, 20)] = 5,
) -> Replies:
    """Show a schedule and its next moments."""
    one = connect().there("schedules", id_, next=next_, runs=runs)

    def shown() -> None:
        following = [_moment(one, moment_ms) for moment_ms in one.get("next") or []]
        show.facts(
            {**one, "when": _rhythm(one), "argument": values.as_json(one.get("argument"))}
            | dict.fromkeys(("next", "next_ms", "runs", "cron", "every", "tz"))
        )
        for moment in following or ["never"] * (next_ > 0 and not one.get("paused")):
            print(f"next  {moment}")
        if one.get("runs"):
            took = "RUN=id|STATUS=status|STARTED=started_ms|ENDED=ended_ms"
            show.Table(took, ({"status": "gone", **run} for run in one["runs"])).print()

    yield one, shown


@schedules.command(name="set")
def _set(
    id_: Id,
    name: Annotated[str, option("the job's name")],
    argument: Annotated[str | None, option("JSON, @FILE or -; default: nil")] = None,
    /,
    *,
    job: Annotated[str | None, option('JSON: other fields of the job: {"queue": "mail", "max_retry": 3}')] = None,
    options: Options = None,
) -> Replies:
    """Create or replace a recurring job."""
    when = given(options)
    if ("every" in when) == ("cron" in when):
        raise Refused("give --every or --cron", "INVALID")
    fields = values.parsed(job, "--job") if job else {}
    if not isinstance(fields, dict):
        raise Refused("--job: expected a JSON object", "INVALID")
    client = connect(creates=True)
    one = client.call("schedule", id_, {**fields, "name": name}, argument=values.argument(argument), **when)
    comes = f", next {_moment(one, one['next_ms'])}" if one.get("next_ms") else ""
    yield one, f"{one['id']}: {_rhythm(one)}{comes}{', paused' if one.get('paused') else ''}"


@schedules.command
def pause(*ids: str) -> Replies:
    """Pause schedules."""
    return _pause(ids, paused=True)


@schedules.command
def resume(*ids: str) -> Replies:
    """Resume schedules."""
    return _pause(ids, paused=False)


def _pause(ids: tuple[str, ...], *, paused: bool) -> Replies:
    client = connect()
    for schedule_id in ids:
        one = client.there("schedules", schedule_id)
        when = {field.name: one[field.name] for field in _WHEN if field.name in one} | {"paused": paused}
        argument = client.serializer.dumps(one.get("argument"))
        after = client.call("schedule", schedule_id, one["job"], argument=argument, **when)
        goes_on = f"goes on, next {show.when(after.get('next_ms')) or 'never'}"
        yield after, f"{schedule_id} {'is paused' if paused else goes_on}"


schedules.command(
    verb(
        "schedule",
        "Make the jobs of schedules at once, beside those of their moments.",
        "{name} runs now: job {reply.job_id}",
        run=True,
    ),
    name="run",
)
schedules.command(verb("unschedule", "Delete schedules; jobs they made stay.", "deleted {name}"), name="delete")
