"""What there is: `queues`, `limits`, `schedules`, `workers`, `failures`, `stats`, `config`, `keys`. Each lists all, or
shows the one that is named. What changes them is an operation: `jqmaster call`; but for pausing, and making a key."""

from __future__ import annotations

import fnmatch
import sys
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from jqmaster.cli import show, values
from jqmaster.cli.kinds import Duration, Span, option
from jqmaster.cli.reach import as_json, connect
from jqmaster.cli.status import Replies
from jqmaster.errors import NotFound
from jqmaster.manifest.contract import Role

Document = dict[str, Any]
Rows = Iterable[Document]
Name = Annotated[str | None, Parameter(name="NAME", help="show this one")]
queues, schedules, keys = App(name="queues"), App(name="schedules"), App(name="keys")
MINUTES = 5
_WAITING = ("queued", "scheduled", "blocked", "retrying")
_STATISTICS = (
    "IN>=enqueued|DONE>=done|FAILED>=failed|LAPSED>=lapsed|ERROR>=error:red|CANCEL>=cancelled|BACK>=released"
    "|MOVED>=moved|SKIP>=skipped|WAIT>=wait.mean|WAIT99>=wait.p99|RUN>=run.mean|RUN99>=run.p99"
)

# What is listed, under which columns, and what is said where there is none.
_TABLES = {
    "queues": (
        "QUEUE~=name|QUEUED>=queued:cyan|OLDEST>=oldest_ready_ms|EMPTY IN>=empties_ms|SCHED>=scheduled:blue"
        "|BLOCKED>=blocked:magenta|RETRY>=retrying:yellow|RUN>=running:green|DONE>=done|ERROR>=error:red"
        "|CANCEL>=cancelled:dim|SKIP>=skipped:dim|IN>=recent.enqueued|OUT>=recent.done|WHY~=why:yellow",
        "no queues yet; they come with their first job",
    ),
    "constraints": (
        "LIMIT=id|AT ONCE>=concurrency|RATE=rate|FOR EACH~=by|RUN>=running|STARTS>=starts|KEYS>=keys|FULL>=full"
        "|HELD>=held:yellow|HOLD=hold_ms:yellow|OPENS=opens_ms|MATCH~=match",
        "no limits",
    ),
    "schedules": (
        "SCHEDULE~=id|EVERY=every|CRON=cron|ZONE=timezone|JOB~=job.name|MADE>=made|LAST=last_ms|NEXT=next_ms"
        "|PAUSED=paused:yellow",
        "no schedules",
    ),
    "workers": (
        "WORKER=id|NAME~=name|STATE=state|ASKED TO=request:yellow|JOBS>=held|OF>=max_jobs|SEEN=seen_ms"
        "|LAPSED>=lapsed:red|QUEUES~=queues",
        "no worker is listed: jqmaster work MODULE:JQ starts one",
    ),
    "failures": (
        "FAILURES~=group|JOBS>=count:red|FIRST=first_ms|LAST=last_ms|MESSAGE~=message",
        "no job has failed for good",
    ),
    "keys": (
        "KEY=id|NAME~=name|ROLES~=roles|QUEUES~=queues|RATE/S>=rate|CREATED=created_ms|USED=used_ms|EXPIRES=expires_ms",
        "there are no keys; servers that only their own host can reach ask for none",
    ),
}  # fmt: skip


def table(operation: str, documents: Rows) -> show.Table:
    """`documents` as `operation` lists them."""
    columns, empty = _TABLES[operation]
    return show.Table(columns, map(_with_why, documents) if operation == "queues" else documents, empty=empty)


def _listed(operation: str, name: str | None = None, **asked: Any) -> Replies:
    """All of a kind under a table; of the one that is named all there is."""
    client = connect()
    if name is not None:
        found = client.there(operation, name, **asked)
        yield found, lambda: _show_all(found)
        return
    documents = list(client.each(operation, **asked))
    yield documents, table(operation, documents)


def _show_all(document: Document) -> None:
    show.facts({name: value for name, value in document.items() if name != "recent"})
    if recent := document.get("recent"):
        print(f"\nlast {MINUTES} minutes:")
        show.Table(_STATISTICS, [recent], empty="nothing happened").print()


# -- queues ---------------------------------------------------------------------------------------


def _with_why(queue: dict[str, Any]) -> dict[str, Any]:
    """A queue, with why its jobs wait."""
    waiting = sum(queue[state] for state in _WAITING)
    cause = f"held by {', '.join(queue['held_by'])}" if queue.get("cause") == "constraint" else queue.get("cause")
    is_full = bool(queue["max_waiting"]) and waiting >= queue["max_waiting"]
    return {**queue, "why": [*filter(None, ["paused" if queue["paused"] else cause, "full" if is_full else None])]}


@queues.default
def queues_(name: Name = None, /) -> Replies:
    """List queues, or show all of one.

    OLDEST is since when its oldest job is ready, IN and OUT are of the last 5 minutes, EMPTY IN is when none is queued
    if all goes on like that, WHY is why the oldest waits. Settings: jqmaster call queue.
    """
    return _listed("queues", name, minutes=MINUTES)


# -- limits ---------------------------------------------------------------------------------------


def limits(id_: Name = None, /) -> Replies:
    """List limits and how much of each is in use, or show all of one.

    Set one: jqmaster call constrain. Close one for a while: jqmaster call hold. Of one with many keys FULL and HELD
    count those that were looked at.
    """
    return _listed("constraints", id_, busiest=20 if id_ else 1)


# -- schedules ------------------------------------------------------------------------------------


@schedules.default
def schedules_(id_: Name = None, /) -> Replies:
    """List recurring jobs, or show all of one.

    Create or replace one, or run it now: jqmaster call schedule.
    """
    return _listed("schedules", id_, next=5, runs=5)


# -- pausing --------------------------------------------------------------------------------------


def _pausing(operation: str, paused: bool) -> Callable[..., Replies]:
    def command(*names: Annotated[str, option("* stands for any run of characters")]) -> Replies:
        client, one = connect(), operation.removesuffix("s")
        known = [str(document.get("id") or document["name"]) for document in client.each(operation)]
        chosen: dict[str, None] = {}
        for name in names:
            fitting = fnmatch.filter(known, name.replace("[", "[[]").replace("?", "[?]"))
            if not fitting:
                raise NotFound(f"no such {one}: {name}")
            chosen |= dict.fromkeys(fitting)
        for name in chosen:
            yield client.call(one, name, paused=paused), f"{name} {'is paused' if paused else 'goes on'}"

    return command


for _app, _operation in (queues, "queues"), (schedules, "schedules"):
    for _word, _paused in ("pause", True), ("resume", False):
        _app.command(_pausing(_operation, _paused), name=_word, help=f"{_word.capitalize()} {_operation}.")


# -- workers --------------------------------------------------------------------------------------


def workers(name: Annotated[str | None, option("show those of this id or name")] = None, /) -> Replies:
    """List workers, or show all of one.

    Those that jobs are pushed to are registered, and those of `jqmaster work --register`: jqmaster call worker asks
    them to be quiet or to stop. Others that pull are listed while they announce themselves. Dead ones stay for an hour.
    """
    found = list(connect().each("workers"))
    if name is None:
        yield found, table("workers", found)
        return
    chosen = [worker for worker in found if name in (worker["id"], worker["name"])]
    if not chosen:
        raise NotFound(f"no worker {name} is listed")
    for worker in chosen:
        yield worker, lambda worker=worker: show.facts(worker)


# -- failures, statistics -------------------------------------------------------------------------


def failures(group: Annotated[str | None, option("show this one")] = None, /) -> Replies:
    """List failures by group, the most recent first, or show all of one.

    jobs --group GROUP lists the jobs of a group, retry --group GROUP has them run again, discard --group GROUP removes
    them.
    """
    client = connect()
    if group is not None:
        for found in client.call("failures", group).documents:
            yield found, lambda found=found: show.facts(found)
            return
        raise NotFound(f"no job has failed for good in the group {group}")
    groups = sorted(client.each("failures"), key=lambda group: -group["last_ms"])
    yield groups, table("failures", groups)


_LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86400}
_SHOWN = {"minute": (30, "%H:%M"), "hour": (24, "%m-%d %H:%M"), "day": (30, "%Y-%m-%d")}


def stats(
    by: Annotated[Literal["minute", "hour", "day"], option("a row for each")] = "hour",
    /,
    *,
    queue: Annotated[str | None, option("of this queue")] = None,
    name: Annotated[str | None, option("of jobs of this name")] = None,
    last: Annotated[Span | None, option("how far back; default: 30 minutes, 24 hours or 30 days")] = None,
) -> Replies:
    """Show what happened, by minute, hour or day.

    FAILED counts attempts that failed and are retried, ERROR jobs that failed for good. WAIT is from when a job is
    ready to its start, RUN a successful attempt: means, and what 99 of 100 do not exceed (by hour and day only).
    """
    length_ms, (rows, form) = _LENGTHS_S[by] * 1000, _SHOWN[by]
    back_ms = last * 1000 if last else (rows - 1) * length_ms
    begin_ms = int((show.now_ms() - back_ms) // length_ms * length_ms)
    buckets = connect().call("stats", by, queue=queue, name=name, from_ms=begin_ms)
    zone = time.gmtime if by == "day" else time.localtime  # days are those of UTC
    for bucket in buckets:
        bucket["begin"] = time.strftime(form, zone(bucket["begin_ms"] / 1000))
    yield buckets, show.Table(f"{by.upper()}=begin|{_STATISTICS}", buckets, empty="nothing happened")


# -- settings and keys ----------------------------------------------------------------------------


def config() -> Replies:
    """Show settings.

    Change some: jqmaster call config --set result_ttl=600,done_max=100
    """
    described = connect().call("config", describe=True)
    rows = [{**row, **{name: values.as_json(row[name]) for name in ("value", "default")}} for row in described]
    columns = "SETTING=name|VALUE>=value|DEFAULT>=default:dim|UNIT=unit:dim|MEANING~=meaning"
    yield described, show.Table(columns, rows)


@keys.default
def keys_() -> Replies:
    """List keys of the HTTP API.

    Servers ask for keys once there is one, or when others than their own host can reach them. The first is made
    straight on Redis: jqmaster keys create ann --role admin --redis URL. Take one away: jqmaster call revoke ID
    """
    return _listed("keys")


@keys.command
def create(
    name: Annotated[str, option("whose it is; the audit log has it")],
    /,
    *,
    role: Annotated[list[Role], option("its role; may be given several times")],
    queue: Annotated[list[str] | None, option("bind it to this queue or pattern; may be given several times")] = None,
    expires: Annotated[Duration | None, option("expire after: 12h, 90d")] = None,
    rate: Annotated[float | None, option("requests per second, on each server")] = None,
) -> Replies:
    """Create a key.

    Prints the key, which nobody can ask for again. Programs take it from JQ_KEY, or from a file that JQ_KEY_FILE names.
    """
    made = connect(creates=True).operations.grant(name, role, queues=queue, ttl=expires, rate=rate)
    yield made, str(made["key"])
    if not as_json():
        print(f"key {made['id']} of {show.plain(made['name'])}; it is not shown again", file=sys.stderr)
