"""`why`: why a job waits, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jqmaster.cli import show, values
from jqmaster.cli.reach import as_json, connect
from jqmaster.cli.status import Replies
from jqmaster.errors import NotFound

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client


def why(id_: Annotated[str, Parameter(name="ID")], /) -> Replies:
    """Say why a job waits, and for what."""
    client = connect()
    told = client.handle(id_).explain()
    if as_json():
        yield told, ""
        return
    lines = reasons(told, client.get(id_), _strict(client, told), show.now_ms())
    is_status = "failed for good" if told["status"] == "error" else f"is {told['status']}"
    head = f"job {told['id']} ({told['name']}) {is_status}, in queue {told['queue']}"
    yield None, "\n  ".join([head, *lines])


def _strict(client: Client, told: dict[str, Any]) -> set[str]:
    """Which of the limits without room keep a strict order."""
    found = set()
    for one in told.get("constraints") or []:
        try:
            if (
                not one.get("open")
                and one.get("concurrency") == 1
                and client.there("constraints", one["id"]).get("order")
            ):
                found.add(one["id"])
        except NotFound:
            continue
    return found


def reasons(told: dict[str, Any], document: dict[str, Any], strict: set[str], now: int) -> list[str]:
    """What is said of a job, a line each. `strict`: limits of these ids keep a strict order."""
    status = told["status"]
    if status in show.ENDED:
        return [f"it ended {show.when(document.get('ended_ms'), now)} and waits for nothing"]
    if status == "running":
        lease = show.when(document.get("due_ms"), now)
        since = show.milliseconds(max(0, now - (document.get("started_ms") or now)))
        return [f"worker {document.get('worker_id')} has run it for {since}; its lease ends {lease}"]
    lines = []
    if status == "blocked":
        left = told.get("waits_for") or []
        lines.append(f"it waits for {show.counted(len(left), 'job')}: {', '.join(left[:5])}{' …' * (len(left) > 5)}")
    due_ms = document.get("due_ms") or told.get("start_ms")
    if status in ("scheduled", "retrying") and due_ms:
        reason = "it is scheduled for" if status == "scheduled" else "after a failure it waits until"
        lines.append(f"{reason} {show.clock(due_ms)}, {show.when(due_ms, now)}")
        if status == "retrying":
            lines.append(f"the failure: {show.one_line(document.get('message')) or document.get('reason')}")
    if told.get("paused"):
        lines.append(f"its queue is paused; jqmaster queues resume {told['queue']}")
    for one in told.get("constraints") or []:
        if not one.get("open"):
            lines += _limit(one, one["id"] in strict, now)
    return lines + _turn(told, status, now)


def _limit(one: dict[str, Any], is_strict: bool, now: int) -> list[str]:
    key = f" (key {values.as_json(one['by'])})" if "by" in one else ""
    name, opens_ms, hold_ms = f"limit {one['id']}{key}", one.get("opens_ms"), one.get("hold_ms") or 0
    lines = []
    if hold_ms > now:
        lines.append(f"{name} is on hold until {show.clock(hold_ms)}, {show.when(hold_ms, now)}")
    used, concurrency = [], one.get("concurrency")
    if concurrency and one.get("running", 0) >= concurrency:
        kept = "in use (strict order: a job keeps its place until it has ended for good)"
        used.append(f"{show.count(one['running'])} of {show.count(concurrency)} {kept if is_strict else 'run'}")
    if opens_ms and opens_ms > hold_ms and _is_used_up(one):
        used.append(f"{_rate(one)}; it opens {show.when(opens_ms, now)}")
    if used:
        lines.append(f"{name} has no room: {', '.join(used)}")
    return lines or [f"{name} is closed" + (f"; it opens {show.when(opens_ms, now)}" if opens_ms else "")]


def _is_used_up(one: dict[str, Any]) -> bool:
    """Whether it is the rate that leaves no room."""
    rate, cost = one.get("rate"), one.get("cost")
    if not rate:
        return False
    needs = min(1 if cost is None else cost, rate["limit"])
    return bool(rate.get("smooth")) or (one.get("starts") or 0) + needs > rate["limit"]


def _rate(one: dict[str, Any]) -> str:
    rate, cost = one["rate"], one.get("cost")
    limit, period = show.count(rate["limit"]), show.duration(rate["period"])
    needs = "" if cost is None else f", this job needs {cost:,g}"
    if rate.get("smooth"):
        return f"{limit} in {period}, evenly apart{needs}"
    used = f"{one.get('starts') or 0:,g}"
    return f"{used} of {limit} used in {period}{needs}" if needs else f"{used} of {limit} starts in {period}"


def _turn(told: dict[str, Any], status: str, now: int) -> list[str]:
    lines = []
    ahead = (told.get("ahead") or 0) if status == "queued" else 0
    if ahead:
        lines.append(f"{show.counted(ahead, 'job comes', 'jobs come')} before it")
    start_ms = told.get("start_ms")
    if told.get("held") and start_ms and start_ms > now:
        who = "the first of them" if ahead else "it"
        lines.append(f"{who} can start {show.when(start_ms, now)} at the earliest")
    workers, waiting, running = (told.get(name) or 0 for name in ("workers", "waiting", "running"))
    if running:
        lines.append(f"{show.counted(running, 'job of its queue runs', 'jobs of its queue run')} now")
    # Workers that pull need not be registered: of those one sees who waits now, and what runs.
    if workers:
        lines.append(f"{show.counted(workers, 'registered worker serves', 'registered workers serve')} its queue")
    if waiting:
        lines.append("a worker waits for jobs of its queue")
    if told.get("unknown"):
        nobody = f"no worker that serves its queue knows jobs named {told['name']}"
        lines.append(f"{nobody}: start one of a program that has it")
    if not (workers or waiting or running):
        lines.append("nobody serves its queue: no worker is registered for it, and none waits for a job of it")
    if not (told.get("held") or told.get("paused") or ahead or running) and status == "queued":
        lines.append("it is next")
    return lines
