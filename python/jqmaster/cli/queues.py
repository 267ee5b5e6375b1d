"""`queues`: look at queues, pause, set and purge them."""

from __future__ import annotations

import fnmatch
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App

from jqmaster.cli import show, values
from jqmaster.cli.act import act
from jqmaster.cli.declared import verb
from jqmaster.cli.jobs import Chosen, DryRun
from jqmaster.cli.kinds import State, option
from jqmaster.cli.reach import Yes, connect
from jqmaster.cli.settings import assignments
from jqmaster.cli.status import Coded, Replies
from jqmaster.errors import NotFound

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

queues = App(name="queues")
RATE_MINUTES = 5
WAITING = ("queued", "scheduled", "blocked", "retrying")
Names = Annotated[str, option("* stands for any run of characters")]


def standings(client: Client) -> list[dict[str, Any]]:
    """All queues, with how they did in the last minutes."""
    return [standing(queue) for queue in client.each("queues", minutes=RATE_MINUTES)]


def standing(queue: dict[str, Any]) -> dict[str, Any]:
    """A queue's document with what people ask of it: `in`, `out` and `net` a minute, `waiting`, `why`, `empty_in`."""
    recent, waiting = queue.get("recent") or {}, sum(queue[state] for state in WAITING)
    minutes = recent.get("span_ms", 60_000) / 60_000
    came, went = recent.get("enqueued", 0) / minutes, (recent.get("done", 0) + recent.get("moved", 0)) / minutes
    ended = sum(recent.get(kind, 0) for kind in ("done", "error", "cancelled", "moved"))
    empty_in = ""
    if queue.get("empties_ms") is not None:
        empty_in = show.milliseconds(queue["empties_ms"])
    elif queue["queued"] and queue.get("cause"):
        empty_in = "growing" if recent.get("enqueued", 0) > ended else "never"
    reasons = ["paused"] if queue["paused"] else []
    if queue.get("cause") == "constraint":
        reasons.append(f"held by {', '.join(queue['held_by'])}")
    elif queue.get("cause") not in (None, "paused"):
        reasons.append({"slow": "too slow"}.get(queue["cause"], queue["cause"]))
    if queue["max_waiting"] and waiting >= queue["max_waiting"]:
        reasons.append("full")
    rates = {"in": round(came, 1), "out": round(went, 1), "net": round(came - went, 1)}
    return {**queue, **rates, "waiting": waiting, "empty_in": empty_in, "why": ", ".join(reasons)}


def table(found: list[dict[str, Any]], *, is_narrow: bool = False) -> show.Table:
    """Queues from `standings`. `is_narrow`: on 80 columns what waits for its time or for others is LATER."""
    now, rows = show.now_ms(), []
    for queue in found:
        since_ms = queue.get("oldest_ready_ms")
        age = "" if since_ms is None else show.duration(max(0, now - since_ms) // 1000, is_coarse=True)
        net = f"{queue['net']:+g}" if queue["net"] else ""
        rows.append({**queue, "oldest": age, "net": net, "later": queue["waiting"] - queue["queued"]})
    columns = "QUEUE~=name|QUEUED>=queued:cyan|OLDEST>=oldest|EMPTY IN>=empty_in|SCHED>=scheduled:blue|"
    columns += "BLOCKED>=blocked:magenta|RETRY>=retrying:yellow|RUN>=running:green|DONE>=done|ERROR>=error:red|"
    columns += "CANCEL>=cancelled:dim|SKIP>=skipped:dim|IN/MIN>=in|DONE/MIN>=out|WHY~=why:yellow"
    if is_narrow:
        columns = "QUEUE~=name|QUEUED>=queued:cyan|OLDEST>=oldest|LATER>=later|RUN>=running:green|ERROR>=error:red|"
        columns += "DONE/MIN>=out|NET/MIN>=net|WHY~=why:yellow"
    return show.Table(columns, rows, empty="no queues yet; they come with their first job")


@queues.default
def queues_(
    *,
    sort: Annotated[
        Literal["name", "oldest", "waiting", "queued", "running", "error", "net", "in", "out"],
        option("sort by name, or the most first"),
    ] = "name",
) -> Replies:
    """List queues.

    IN/MIN and DONE/MIN are means of the last 5 minutes, EMPTY IN is when none is queued if all goes on like that, WHY
    is why the oldest waits.
    """
    found = standings(connect())
    if sort == "oldest":
        found.sort(key=lambda queue: queue.get("oldest_ready_ms") or float("inf"))
    elif sort != "name":
        found.sort(key=lambda queue: -queue[sort])
    yield found, table(found)


@queues.command(name="show")
def show_(queue: str, /) -> Replies:
    """Show a queue's counts and settings, and which limits hold its jobs."""
    found = connect().there("queues", queue, minutes=RATE_MINUTES, held=1000)
    yield found, lambda: _facts(standing(found))


def _facts(queue: dict[str, Any]) -> None:
    recent = queue.pop("recent", None) or {}
    for kind in ("wait", "run"):
        if times := recent.get(kind):
            queue[f"{kind} p50, p95, p99"] = ", ".join(show.milliseconds(times[at]) for at in ("p50", "p95", "p99"))
    if (held := queue.pop("held", None)) and held["jobs"]:
        by = ", ".join(f"{one['id']} {show.count(one['jobs'])}" for one in held["by"])
        queue["held"] = f"{show.count(held['jobs'])} of the first {show.count(held['looked'])}: {by}"
    show.facts(queue)


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


@queues.command(name="set")
def _set(
    queue: str,
    /,
    *settings: Annotated[str, option("SETTING=VALUE; SETTING= removes it")],
    new: Annotated[bool, option("create the queue if it does not exist")] = False,
) -> Replies:
    """Set a queue's size limit, settings and fair sharing.

    max_waiting=1000: jobs are refused when so many wait. fair=argument.customer: who takes turns; with weights
    fair='{"by": "argument.customer", "weights": {"acme": 3}}'. All else as in `jqmaster config`.
    """
    client = connect()
    fair = [text.removeprefix("fair=") for text in settings if text.startswith("fair=")]
    given = assignments(tuple(text for text in settings if not text.startswith("fair=")))
    changes: dict[str, Any] = {"max_waiting": given.pop("max_waiting") or 0} if "max_waiting" in given else {}
    changes["set"] = {name: value for name, value in given.items() if value is not None} or None
    changes["unset"] = [name for name, value in given.items() if value is None] or None
    if fair:
        changes["fair"] = _fair(fair[-1])
    changes["known"] = None if new else True
    try:
        after = client.call("queue", queue, **{name: value for name, value in changes.items() if value is not None})
    except NotFound:
        raise NotFound(f"no such queue: {queue}; with --new it is made") from None
    yield after, lambda: show.facts(after)


def _fair(text: str) -> Any:
    """By what it is shared, as the engine takes it; empty: by nothing. Raises Refused."""
    return values.parsed(text, "fair") if text.startswith("{") else {"by": text} if text else {}


@queues.command
def purge(
    queue: str,
    /,
    *,
    status: Annotated[list[State] | None, option("in this state instead; may be given several times")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> Coded:
    """Discard a queue's waiting jobs."""
    client = connect()
    client.there("queues", queue)
    chosen = Chosen(queue=queue, status=status or list(WAITING), yes=yes, dry_run=dry_run)  # type: ignore[arg-type]
    return (yield from act(client, "discard", (), chosen, partial(client.call, "discard")))


queues.command(verb("forget", "Take away queues that have no jobs.", "forgot {name}"), name="forget")
