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

Rows = Iterable[dict[str, Any]]
Name = Annotated[str | None, Parameter(name="NAME", help="show this one")]
queues, schedules, keys = App(name="queues"), App(name="schedules"), App(name="keys")
MINUTES = 5
_WAITING = ("queued", "scheduled", "blocked", "retrying")
_STYLES = {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow"}
_STYLES |= {"unreachable": "red", "gone": "red"}


def _listed(operation: str, name: str | None, table: Callable[[Rows], show.Table], **asked: Any) -> Replies:
    """All of a kind under a table; of the one that is named all there is."""
    client = connect()
    if name is not None:
        found = client.there(operation, name, **asked)
        yield found, lambda: show.facts(found)
        return
    documents = list(client.each(operation, **asked))
    yield documents, table(documents)


# -- queues ---------------------------------------------------------------------------------------


def queues_table(found: Rows, *, is_narrow: bool = False) -> show.Table:
    """With `minutes`, see MINUTES. `is_narrow`: on 80 columns what waits for its time or for others is LATER."""
    now, rows = show.now_ms(), []
    for queue in found:
        recent, waiting = queue.get("recent") or {}, sum(queue[state] for state in _WAITING)
        minutes = recent.get("span_ms", 60_000) / 60_000
        came, went = recent.get("enqueued", 0), recent.get("done", 0) + recent.get("moved", 0)
        empty_in = ""
        if queue.get("empties_ms") is not None:
            empty_in = show.milliseconds(queue["empties_ms"])
        elif queue["queued"] and queue.get("cause"):
            ended = went + recent.get("error", 0) + recent.get("cancelled", 0)
            empty_in = "growing" if came > ended else "never"
        cause = queue.get("cause")
        if cause == "constraint":
            cause = f"held by {', '.join(queue['held_by'])}"
        full = bool(queue["max_waiting"]) and waiting >= queue["max_waiting"]
        since_ms = queue.get("oldest_ready_ms")
        rows.append({
            **queue,
            "in": round(came / minutes, 1),
            "out": round(went / minutes, 1),
            "later": waiting - queue["queued"],
            "oldest": "" if since_ms is None else show.duration(max(0, now - since_ms) // 1000, is_coarse=True),
            "empty_in": empty_in,
            "why": [
                reason for reason in ("paused" if queue["paused"] else cause, "full" if full else None) if reason
            ],
        })  # fmt: skip
    kept = "QUEUE~=name|QUEUED>=queued:cyan|OLDEST>=oldest"
    if is_narrow:
        columns = f"{kept}|LATER>=later|RUN>=running:green|ERROR>=error:red|DONE/MIN>=out|WHY~=why:yellow"
    else:
        columns = f"{kept}|EMPTY IN>=empty_in|SCHED>=scheduled:blue|BLOCKED>=blocked:magenta|RETRY>=retrying:yellow|"
        columns += "RUN>=running:green|DONE>=done|ERROR>=error:red|CANCEL>=cancelled:dim|SKIP>=skipped:dim|"
        columns += "IN/MIN>=in|DONE/MIN>=out|WHY~=why:yellow"
    return show.Table(columns, rows, empty="no queues yet; they come with their first job")


@queues.default
def queues_(name: Name = None, /) -> Replies:
    """List queues, or show all of one.

    IN/MIN and DONE/MIN are means of the last 5 minutes, EMPTY IN is when none is queued if all goes on like that, WHY
    is why the oldest waits. Settings: jqmaster call queue.
    """
    return _listed("queues", name, queues_table, minutes=MINUTES)


Names = Annotated[str, option("* stands for any run of characters")]


@queues.command
def pause(*names: Names) -> Replies:
    """Pause queues."""
    return _pause(names, paused=True)


@queues.command
def resume(*names: Names) -> Replies:
    """Resume queues."""
    return _pause(names, paused=False)


def _pause(names: tuple[str, ...], *, paused: bool) -> Replies:
    client = connect()
    known = [queue["name"] for queue in client.each("queues")]
    chosen: dict[str, None] = {}
    for name in names:
        pattern = name.replace("[", "[[]").replace("?", "[?]")
        fitting = [one for one in known if fnmatch.fnmatchcase(one, pattern)]
        if not fitting:
            raise NotFound(f"no such queue: {name}")
        chosen |= dict.fromkeys(fitting)
    for name in chosen:
        queue = client.call("queue", name, paused=paused)
        jobs = f"; {show.counted(queue['queued'], 'job waits', 'jobs wait')}" if queue["queued"] else ""
        yield queue, f"{name} {'is paused' if paused else 'goes on'}{jobs}"


# -- limits ---------------------------------------------------------------------------------------


def limits_table(found: Rows) -> show.Table:
    rows = []
    for limit in found:
        rate, by, keys = limit.get("rate"), limit.get("by"), limit["keys"]
        most = [f"{show.count(limit['concurrency'])} at once"] if limit.get("concurrency") else []
        most += [f"{show.count(rate['limit'])} in {show.duration(rate['period'])}"] if rate else []
        used, allowed = limit["running"], limit.get("concurrency")
        if not allowed and rate and limit.get("starts") is not None:
            used, allowed = limit["starts"], rate["limit"]
        use = f"{used:g}/{show.count(allowed)}" if allowed else f"{used} run"
        rows.append({
            **limit,
            "most": ", ".join(most) + (f" for each {by if isinstance(by, str) else ' and '.join(by)}" if by else ""),
            "use": f"{show.count(used)} in {show.counted(keys, 'key')}" if by else use,
            "opens_ms": max(limit.get("hold_ms") or 0, limit.get("opens_ms") or 0),
        })  # fmt: skip
    columns = "LIMIT=id|AT MOST~=most|IN USE=use|FULL>=full|HELD>=held:yellow|OPENS=opens_ms|MATCH~=match"
    return show.Table(columns, rows, empty="no limits")


def limits(id_: Name = None, /) -> Replies:
    """List limits and how much of each is in use, or show all of one.

    Set one: jqmaster call constrain. Close one for a while: jqmaster call hold. Of one with many keys FULL and HELD
    count those that were looked at.
    """
    return _listed("constraints", id_, limits_table, busiest=20 if id_ else 1)


# -- schedules ------------------------------------------------------------------------------------


def _schedules_table(found: Rows) -> show.Table:
    rows = []
    for one in found:
        following: Any = ("paused", "yellow") if one.get("paused") else ("never", "red")
        if one.get("next_ms") and not one.get("paused"):
            following = show.when(one["next_ms"])
        clocks = one.get("timezone") or one.get("tz") or "UTC"
        rhythm = f"every {show.duration(one['every'])}" if one.get("every") else f"{one.get('cron')} {clocks}"
        rows.append({**one, "rhythm": rhythm, "name": one["job"]["name"], "following": following})
    columns = "SCHEDULE~=id|WHEN~=rhythm|JOB~=name|MADE>=made|LAST=last_ms|NEXT=following"
    return show.Table(columns, rows, empty="no schedules")


@schedules.default
def schedules_(id_: Name = None, /) -> Replies:
    """List recurring jobs, or show all of one.

    Create or replace one, or run it now: jqmaster call schedule.
    """
    return _listed("schedules", id_, _schedules_table, next=5, runs=5)


@schedules.command(name="pause")
def _pause_schedules(*ids: str) -> Replies:
    """Pause schedules."""
    return _paused_schedules(ids, paused=True)


@schedules.command(name="resume")
def _resume_schedules(*ids: str) -> Replies:
    """Resume schedules."""
    return _paused_schedules(ids, paused=False)


def _paused_schedules(ids: tuple[str, ...], *, paused: bool) -> Replies:
    from jqmaster.manifest.manifest import operations

    client = connect()
    taken = {argument.name for argument in operations()["schedule"].arguments}
    for schedule_id in ids:
        one = client.there("schedules", schedule_id)
        spec = {name: value for name, value in one.items() if name in taken} | {"paused": paused}
        after = client.call("schedule", **spec | {"argument": client.serializer.dumps(one.get("argument"))})
        goes_on = f"goes on, next {show.when(after.get('next_ms')) or 'never'}"
        yield after, f"{schedule_id} {'is paused' if paused else goes_on}"


# -- workers --------------------------------------------------------------------------------------


def workers_table(found: Rows) -> show.Table:
    now, rows = show.now_ms(), []
    for worker in found:
        held, state = worker.get("held") or 0, worker["state"]
        has_slots = worker.get("url") or worker.get("pid")
        begun = [started_ms for _, started_ms in worker.get("running") or []]
        rows.append({
            **worker,
            "state": (f"{state}, asked to stop" if worker.get("request") == "stop" else state, _STYLES.get(state)),
            "jobs": f"{held}/{worker['max_jobs']}" if has_slots else held,
            "longest": show.milliseconds(max(0, now - min(begun))) if begun else "",
        })  # fmt: skip
    columns = "WORKER=id|NAME~=name|STATE=state|JOBS>=jobs|LONGEST>=longest|SEEN=seen_ms|LAPSED>=lapsed:red"
    return show.Table(
        f"{columns}|QUEUES~=queues", rows, empty="no worker is listed: jqmaster work MODULE:JQ starts one"
    )


def workers(name: Annotated[str | None, option("show those of this id or name")] = None, /) -> Replies:
    """List workers, or show all of one.

    Those that jobs are pushed to are registered, and those of `jqmaster work --register`: jqmaster call worker asks
    them to be quiet or to stop. Others that pull are listed while they announce themselves. Dead ones stay for an hour.
    """
    found = list(connect().each("workers"))
    if name is None:
        yield found, workers_table(found)
        return
    chosen = [worker for worker in found if name in (worker["id"], worker["name"])]
    if not chosen:
        raise NotFound(f"no worker {name} is listed")
    for worker in chosen:
        yield worker, lambda worker=worker: show.facts(worker)


# -- failures, statistics -------------------------------------------------------------------------


def failures_table(groups: Rows) -> show.Table:
    rows = []
    for group in groups:
        message = show.one_line(group.get("message")).removeprefix(f"{group['group']}: ")
        counts = group.get("counts") or []
        rows.append({**group, "message": message, "trend": show.spark(counts) if any(counts) else ""})
    columns = "FAILURES~=group|JOBS>=count:red|TREND=trend|FIRST=first_ms|LAST=last_ms|MESSAGE~=message"
    return show.Table(columns, rows, empty="no job has failed for good")


def failures(
    group: Annotated[str | None, option("show this one, with names, queues and values of its newest jobs")] = None,
    /,
    *,
    last: Annotated[Span, option("time span of TREND, in s")] = 3600,
) -> Replies:
    """List failures by group, the most recent first, or show all of one.

    jobs --group GROUP lists the jobs of a group, retry --group GROUP has them run again, discard --group GROUP removes
    them.
    """
    client, now = connect(), show.now_ms()
    asked = {"steps": 12, "from_ms": now - round(last * 1000), "to_ms": now + 1}
    if group is not None:
        for found in client.call("failures", group, sample=100, **asked).documents:
            yield found, lambda found=found: show.facts({**found, "counts": show.spark(found["counts"])})
            return
        raise NotFound(f"no job has failed for good in the group {group}")
    groups = sorted(client.each("failures", **asked), key=lambda one: -one["last_ms"])
    yield groups, failures_table(groups)


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
    found = connect().call("stats", by, queue=queue, name=name, from_ms=begin_ms)
    zone = time.gmtime if by == "day" else time.localtime  # days are those of UTC
    for one in found:
        one["begin"] = time.strftime(form, zone(one["begin_ms"] / 1000))
        for kind in ("wait", "run"):
            if (times := one.get(kind) or {}).get("count"):
                one |= {f"{kind}_{what}": show.milliseconds(times[what]) for what in ("mean", "p99")}
    columns = "IN>=enqueued|DONE>=done|FAILED>=failed|LAPSED>=lapsed|ERROR>=error:red|CANCEL>=cancelled|BACK>=released"
    columns += "|MOVED>=moved|SKIP>=skipped|WAIT>=wait_mean|WAIT99>=wait_p99|RUN>=run_mean|RUN99>=run_p99"
    yield found, show.Table(f"{by.upper()}=begin|{columns}", found, empty="nothing happened")


# -- settings and keys ----------------------------------------------------------------------------


def config() -> Replies:
    """Show settings.

    Change some: jqmaster call config --set result_ttl=600,done_max=100
    """
    described = connect().call("config", describe=True)
    rows = [{**one, "value": _setting(one, "value"), "default": _setting(one, "default")} for one in described]
    for row in rows:
        row["value"] = row["value"], "bold" if row["value"] != row["default"] else None
    yield described, show.Table("SETTING=name|VALUE>=value|DEFAULT>=default:dim|MEANING~=meaning", rows)


def _setting(one: dict[str, Any], name: str) -> str:
    value = one[name]
    return show.duration(value) if one.get("unit") in ("s", "seconds") else values.as_json(value)


@keys.default
def keys_() -> Replies:
    """List keys of the HTTP API.

    Masters ask for keys once there is one, or when others than their own host can reach them. The first is made
    straight on Redis: jqmaster keys create ann --role admin --redis URL. Take one away: jqmaster call revoke ID
    """
    found = list(connect().each("keys"))
    columns = "KEY=id|NAME~=name|ROLES~=roles|QUEUES~=queues|RATE/S>=rate|CREATED=created_ms|USED=used_ms"
    columns += "|EXPIRES=expires_ms"
    empty = "there are no keys; masters that only their own host can reach ask for none"
    yield found, show.Table(columns, found, empty=empty)


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
