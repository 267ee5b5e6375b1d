"""`why`: why a job waits, and for what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from jqmaster.cli import show, values
from jqmaster.cli.reach import as_json, connect
from jqmaster.cli.status import Replies


def why(id_: Annotated[str, Parameter(name="ID")], /) -> Replies:
    """Say why a job waits."""
    client = connect()
    explanation = client.operations.explain(id_)
    if as_json():
        yield explanation, ""
        return
    is_status = "failed for good" if explanation["status"] == "error" else f"is {explanation['status']}"
    head = f"job {explanation['id']} ({explanation['name']}) {is_status}, in queue {explanation['queue']}"
    yield None, "\n  ".join([head, *reasons(explanation, client.handle(id_).document(), show.now_ms())])


def reasons(explanation: dict[str, Any], document: dict[str, Any], now: int) -> Iterator[str]:
    """What is said of a job, a line each."""
    status = explanation["status"]
    if status in show.ENDED:
        yield f"it ended {show.when(document.get('ended_ms'), now)} and waits for nothing"
        return
    if status == "running":
        since = show.milliseconds(max(0, now - (document.get("started_ms") or now)))
        lease = show.when(document.get("due_ms"), now)
        yield f"worker {document.get('worker_id')} has run it for {since}; its lease ends {lease}"
        return
    if status == "blocked":
        left = explanation.get("waits_for") or []
        yield f"it waits for {show.counted(len(left), 'job')}: {', '.join(left[:5])}{' …' * (len(left) > 5)}"
    due_ms = document.get("due_ms") or explanation.get("start_ms")
    if status == "scheduled" and due_ms:
        yield f"it is scheduled for {show.both(due_ms, now)}"
    if status == "retrying" and due_ms:
        yield f"after a failure it waits until {show.both(due_ms, now)}"
        yield f"the failure: {show.one_line(document.get('message')) or document.get('reason')}"
    if explanation.get("paused"):
        yield f"its queue is paused; jqmaster queues resume {explanation['queue']}"
    for limit in explanation.get("constraints") or []:
        if not limit.get("open"):
            yield _limit(limit, now)
    yield from _turn(explanation, status, now)


def _limit(limit: dict[str, Any], now: int) -> str:
    """Why a limit lets the job not start."""
    name = f"limit {limit['id']}" + (f" (key {values.as_json(limit['by'])})" if "by" in limit else "")
    opens_ms, hold_ms = limit.get("opens_ms") or 0, limit.get("hold_ms") or 0
    if hold_ms > now:
        return f"{name} is on hold until {show.both(hold_ms, now)}"
    used, concurrency, rate = [], limit.get("concurrency"), limit.get("rate")
    if concurrency and limit.get("running", 0) >= concurrency:
        used.append(f"{show.count(limit['running'])} of {show.count(concurrency)} run")
    if rate and opens_ms > now:
        most, period = show.count(rate["limit"]), show.duration(rate["period"])
        used.append(f"{limit.get('starts') or 0:,g} of {most} used in {period}; it opens {show.when(opens_ms, now)}")
    return f"{name} has no room: {', '.join(used)}" if used else f"{name} is closed"


def _turn(explanation: dict[str, Any], status: str, now: int) -> Iterator[str]:
    ahead = (explanation.get("ahead") or 0) if status == "queued" else 0
    if ahead:
        yield f"{show.counted(ahead, 'job comes', 'jobs come')} before it"
    if explanation.get("held") and (explanation.get("start_ms") or 0) > now:
        who = "the first of them" if ahead else "it"
        yield f"{who} can start {show.when(explanation['start_ms'], now)} at the earliest"
    workers, waiting, running = (explanation.get(name) or 0 for name in ("workers", "waiting", "running"))
    if running:
        yield f"{show.counted(running, 'job of its queue runs', 'jobs of its queue run')} now"
    # Of workers that neither register nor announce themselves one sees who waits now, and what runs.
    if workers:
        yield f"{show.counted(workers, 'worker serves', 'workers serve')} its queue"
    if waiting:
        yield "a worker waits for jobs of its queue"
    if explanation.get("unknown"):
        name = explanation["name"]
        yield f"no worker that serves its queue knows jobs named {name}: start one of a program that has it"
    if not (workers or waiting or running):
        yield "nobody serves its queue: no worker names it, and none waits for a job of it"
    if not (explanation.get("held") or explanation.get("paused") or ahead or running) and status == "queued":
        yield "it is next"
