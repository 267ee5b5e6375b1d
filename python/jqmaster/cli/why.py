"""`explain`: why a job waits, and for what."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.errors import NotFound

_RETRYING_LOOKED_AT = 20


@asks("""explain
say why a job waits, and for what

id ID
""")
def _explain(client: Client, options: Options) -> Replies:
    told = client.handle(options.id).explain()
    if options.json:
        yield told, ""
    else:
        yield None, partial(_print, told, client.get(options.id), _strict(client, told))


def _print(told: dict[str, Any], document: dict[str, Any], strict: dict[str, dict[str, Any] | None]) -> None:
    status = told["status"]
    name = f"job {told['id']} ({show.plain(told['name'])})"
    is_status = "failed for good" if status == "error" else f"is {status}"
    where = f"in queue {show.plain(told['queue'])}"
    print(f"{name} {show.paint(is_status, show.OF_STATE.get(status))}, {where}")
    for line in reasons(told, document, strict, show.now_ms()):
        print(f"  {show.plain(line)}")


def _strict(client: Client, told: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    """By ids of the constraints without room whose order is strict: the job that keeps the place until its
    retry, where it is found."""
    found: dict[str, dict[str, Any] | None] = {}
    for one in told.get("constraints") or []:
        if not one.get("open") and one.get("concurrency") == 1:
            try:
                if client.there("constraints", one["id"]).get("order"):
                    found[one["id"]] = _keeper(client, one)
            except NotFound:
                continue
    return found


def _keeper(client: Client, wanted: dict[str, Any]) -> dict[str, Any] | None:
    for job in itertools.islice(client.jobs(status="retrying", brief=True), _RETRYING_LOOKED_AT):
        try:
            entries = client.handle(job["id"]).explain().get("constraints") or []
        except NotFound:
            continue
        # To the one that has the place it is open, though it is full.
        if any(one["id"] == wanted["id"] and one.get("by") == wanted.get("by") and one.get("open") for one in entries):
            return job
    return None


def reasons(
    told: dict[str, Any], document: dict[str, Any], strict: dict[str, dict[str, Any] | None], now: int
) -> list[str]:
    """What is said of a job, a line each. `strict`: see `_strict`."""
    status = told["status"]
    if status in show.ENDED:
        return [f"it ended {show.when(document.get('ended_ms'), now)} and waits for nothing"]
    if status == "running":
        lease = show.when(document.get("due_ms"), now)
        since = show.coarse(max(0, now - (document.get("started_ms") or now)) / 1000)
        return [f"worker {document.get('worker_id')} runs it for {since}; its lease ends {lease}"]
    lines = []
    if status == "blocked":
        left = told.get("waits_for") or []
        some = ", ".join(left[:5]) + (" …" if len(left) > 5 else "")
        lines.append(f"it waits for {show.counted(len(left), 'job')}: {some}")
    due_ms = document.get("due_ms") or told.get("start_ms")
    if status in ("scheduled", "retrying") and due_ms:
        why = "it is scheduled for" if status == "scheduled" else "after a failure it waits until"
        lines.append(f"{why} {show.clock(due_ms)}, {show.soon(due_ms, now)}")
        if status == "retrying":
            lines.append(f"the failure: {show.one_line(document.get('message')) or document.get('reason')}")
    if told.get("paused"):
        lines.append(f"its queue is paused; jqmaster queues resume {told['queue']}")
    for one in told.get("constraints") or []:
        if not one.get("open"):
            lines += _constraint(one, one["id"] in strict, now)
            keeper = strict.get(one["id"])
            if keeper and keeper.get("due_ms"):
                lines.append(f"job {keeper['id']} has the place, and is tried again {show.soon(keeper['due_ms'], now)}")
    return lines + _turn(told, status, now)


def _constraint(one: dict[str, Any], is_strict: bool, now: int) -> list[str]:
    key = f" (key {values.as_json(one['by'])})" if "by" in one else ""
    name, opens_ms, hold_ms = f"constraint {one['id']}{key}", one.get("opens_ms"), one.get("hold_ms") or 0
    lines = []
    if hold_ms > now:
        lines.append(f"{name} is on hold until {show.clock(hold_ms)}, {show.soon(hold_ms, now)}")
    used = []
    concurrency = one.get("concurrency")
    if concurrency and one.get("running", 0) >= concurrency:
        kept = "in use (strict order: a job keeps its place until it has ended for good)"
        used.append(f"{show.count(one['running'])} of {show.count(concurrency)} {kept if is_strict else 'run'}")
    if opens_ms and opens_ms > hold_ms and _is_used_up(one):
        used.append(f"{_rate(one)}; it opens {show.soon(opens_ms, now)}")
    if used:
        lines.append(f"{name} has no room: {', '.join(used)}")
    if not lines:
        lines.append(f"{name} is closed" + (f"; it opens {show.soon(opens_ms, now)}" if opens_ms else ""))
    return lines


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
        lines.append(f"{who} can start {show.soon(start_ms, now)} at the earliest")
    workers, waiting, running = (told.get(name) or 0 for name in ("workers", "waiting", "running"))
    if running:
        lines.append(f"{show.counted(running, 'job')} of its queue {'runs' if running == 1 else 'run'} now")
    # Workers that pull need not be registered: of those one sees who waits now, and what runs.
    if workers:
        serve = show.counted(workers, "registered worker serves", "registered workers serve")
        lines.append(f"{serve} its queue")
    if waiting:
        lines.append("a worker waits for jobs of its queue")
    if told.get("unknown"):
        nobody = f"no worker that serves its queue knows jobs named {told['name']}"
        lines.append(f"{nobody}: start one of a program that has it")
    if not workers and not waiting and not running:
        lines.append("nobody serves its queue: no worker is registered for it, and none waits for a job of it")
    if not told.get("held") and not told.get("paused") and status == "queued" and not ahead and not running:
        lines.append("it is next")
    return lines
