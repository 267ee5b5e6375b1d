"""What is wrong with a namespace and its Redis, and what to do about it.

`examine` gathers facts and runs every check over them. The checks are plain functions from facts to findings,
here those of the namespace, in `redis_side` those of Redis. The command `jqmaster doctor` prints findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

from jqmaster.doctor import redis_side
from jqmaster.doctor.facts import Facts, Source, gather
from jqmaster.doctor.finding import Finding, Level
from jqmaster.engine.calls import Caller
from jqmaster.engine.engine import Operations

ORDER: tuple[Level, ...] = ("problem", "warning", "note", "ok")

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
PATIENCE_MS = 10_000  # what is due is done within this time where anybody sweeps
UNSERVED_MS = 10_000
LATE_MS = 10 * _MINUTE_MS
LONG_MS = _HOUR_MS
GROWS = 10  # failures of a group in an hour


async def examine(source: Source, server: Any = None) -> list[Finding]:
    """All findings, the worst first. `server`: what `redis_side.look` found; None where Redis itself cannot
    be asked. Raises what the source does."""
    facts = await gather(source, None if server is None else server.now_ms)
    found = [] if server is None else list(redis_side.check(server))
    found += check(facts)
    return sorted(found, key=lambda finding: ORDER.index(finding.level))


async def look(engine: Operations) -> list[Finding]:
    """All findings, straight on Redis or by way of a master, which tells nothing of its Redis."""
    server = await redis_side.look(engine) if isinstance(engine, Caller) else None
    if server is not None and server.trouble:
        return sorted(redis_side.check(server), key=lambda finding: ORDER.index(finding.level))
    return await examine(Source(engine), server)


def is_wrong(findings: list[Finding]) -> bool:
    return any(finding.level in ("problem", "warning") for finding in findings)


def check(facts: Facts) -> Iterator[Finding]:
    """The checks of the namespace; one that finds nothing says so."""
    for name, fine, one in (
        ("sweeping", "what is due is done in time", _sweeping),
        ("unserved", "every queue with waiting jobs is served", _unserved),
        ("late", "no queue is far behind", _late),
        ("paused", "no paused queue has waiting jobs", _paused),
        ("full", "no queue is full", _full),
        ("blocked", "no job waits for one that failed", _blocked),
        ("constraints", "no constraint is closed for long", _constraints),
        ("keys", "every constraint finds values for its keys", _keys),
        ("paths", "every constraint finds values for its conditions and costs", _paths),
        ("schedules", "every schedule comes again", _schedules),
        ("lapsed", "no lease lapsed in the last hour", _lapsed),
        ("overran", "no job ran for its max_runtime in the last hour", _overran),
        ("workers", "all registered workers can be reached", _workers),
        ("failures", "no group of failures grows", _failures),
        ("whole", "all was looked at", _whole),
    ):
        found = list(one(facts))
        yield from found or [Finding(name, "ok", fine)]


def _sweeping(facts: Facts) -> Iterator[Finding]:
    means = "Nobody sweeps: neither a master nor a worker that pulls is there, or none of them gets through."
    do = "Start a master (`jqmaster serve`) or a worker."
    late = [job for job in facts.due if facts.now_ms - job["due_ms"] > PATIENCE_MS]
    for job in late[:3]:
        kind = "a lapsed lease" if job["status"] == "running" else f"a {job['status']} job"
        title = f"queue {job['queue']}: {kind} has been overdue for {_ago(facts.now_ms - job['due_ms'])}"
        yield Finding("sweeping", "problem", title, means, do, job["queue"], {"job": job["id"]})
    for schedule in facts.schedules:
        next_ms = schedule.get("next_ms")
        if next_ms and facts.now_ms - next_ms > PATIENCE_MS:
            title = f"schedule {schedule['id']} has been overdue for {_ago(facts.now_ms - next_ms)}"
            yield Finding("sweeping", "problem", title, means, do, schedule["id"])


def _unserved(facts: Facts) -> Iterator[Finding]:
    for head in facts.heads:
        told = head.explained
        serves = told.get("workers") or told.get("waiting") or told.get("running")
        age_ms = facts.now_ms - head.since_ms
        if serves or told.get("paused") or age_ms < UNSERVED_MS:
            continue
        queue = head.queue["name"]
        yield Finding(
            "unserved", "problem",
            f"nobody serves queue {queue}, where {_wait(head.queue['queued'])}",
            f"No worker is registered for it, and none waits for its jobs; the next has waited for "
            f"{_ago(age_ms)}.",
            f"Start a worker that names the queue {queue}, or see whether its workers name another.", queue,
            {"queued": head.queue["queued"], "waits_ms": age_ms},
        )  # fmt: skip


def _late(facts: Facts) -> Iterator[Finding]:
    for head in facts.heads:
        told, age_ms = head.explained, facts.now_ms - head.since_ms
        served = told.get("workers") or told.get("waiting") or told.get("running")
        if not served or told.get("paused") or age_ms < LATE_MS:
            continue
        queue = head.queue["name"]
        why = "A constraint holds it." if told.get("held") else "Its workers are slower than its jobs come."
        do = f"See `jqmaster explain {told['id']}`."
        if not told.get("held"):
            do = f"Start more workers for {queue}, or give them more --concurrency."
        title = f"queue {queue}: the next job has waited for {_ago(age_ms)}; {_wait(head.queue['queued'])}"
        yield Finding("late", "warning", title, why, do, queue, {"waits_ms": age_ms})


def _paused(facts: Facts) -> Iterator[Finding]:
    for queue in facts.queues:
        waiting = queue["queued"]
        if queue["paused"] and waiting:
            yield Finding(
                "paused", "warning", f"queue {queue['name']} is paused, and {_wait(waiting)}",
                "A paused queue takes jobs and starts none.",
                f"`jqmaster queues resume {quote(queue['name'])}`",
                queue["name"], {"queued": waiting},
            )  # fmt: skip


def _full(facts: Facts) -> Iterator[Finding]:
    for queue in facts.queues:
        waiting = sum(queue[state] for state in ("queued", "scheduled", "blocked", "retrying"))
        if queue["max_waiting"] and waiting >= queue["max_waiting"]:
            yield Finding(
                "full", "problem", f"queue {queue['name']} is full: {_wait(waiting)}",
                "Whoever enqueues there is refused.",
                f"Start more workers, or raise the limit: `jqmaster queues limit {quote(queue['name'])} N`.",
                queue["name"], {"max_waiting": queue["max_waiting"]},
            )  # fmt: skip


def _blocked(facts: Facts) -> Iterator[Finding]:
    for job, failed in facts.stuck:
        yield Finding(
            "blocked", "problem",
            f"job {job['id']} ({job['name']}) waits for {failed['id']}: {failed['status']}",
            "It stays blocked until that job was retried and is done (if_failed is wait).",
            f"`jqmaster retry {failed['id']}`, or `jqmaster cancel {job['id']}`.",
            job["id"], {"queue": job["queue"]},
        )  # fmt: skip


def _constraints(facts: Facts) -> Iterator[Finding]:
    for constraint, key in facts.keys:
        name = constraint["id"] + (f" (key {key['by']})" if "by" in key else "")
        held = key.get("held") or 0
        closed_ms = (key.get("opens_ms") or 0) - facts.now_ms
        is_hold = (key.get("hold_ms") or 0) > facts.now_ms
        if closed_ms > LONG_MS:
            by = f" --by {quote(json.dumps(key['by'], default=str))}" if "by" in key else ""
            yield Finding(
                "constraints", "warning",
                f"constraint {name} is {'on hold' if is_hold else 'closed'} for another {_ago(closed_ms)}, "
                f"{_jobs(held)} held",
                "Somebody put it on hold." if is_hold else "On hold, or its rate leaves no start before.",
                f"`jqmaster constraints hold {quote(constraint['id'])} 0{by}` opens what was put on hold.",
                constraint["id"], {"opens_ms": key["opens_ms"], "held": held},
            )  # fmt: skip
    for constraint_id, job in facts.keepers:
        left_ms = (job.get("due_ms") or 0) - facts.now_ms
        if left_ms > LATE_MS:
            yield Finding(
                "constraints", "warning",
                f"constraint {constraint_id}: others wait for job {job['id']}, which is tried again in "
                f"{_ago(left_ms)}",
                "With a strict order a job that failed keeps its key until it has ended for good.",
                f"`jqmaster retry {job['id']}` tries it now, "
                f"`jqmaster cancel {job['id']}` lets the others go on.",
                constraint_id, {"job": job["id"]},
            )  # fmt: skip


def _keys(facts: Facts) -> Iterator[Finding]:
    found: dict[str, tuple[Any, list[list[Any]]]] = {}
    for constraint, key in facts.keys:
        if "by" in key:
            paths = constraint["by"]
            values = [key["by"]] if isinstance(paths, str) else list(key["by"])
            found.setdefault(constraint["id"], (paths, []))[1].append(values)
    for constraint_id, (by, keys) in found.items():
        paths = [by] if isinstance(by, str) else list(by)
        # What is longer than 64 bytes is shown as one text, and cannot be all null.
        for place, path in enumerate(paths):
            if all(len(values) == len(paths) and values[place] is None for values in keys):
                which = "all its keys are null" if len(paths) == 1 else "its part of all keys is null"
                yield Finding(
                    "keys", "note", f"constraint {constraint_id}: {path} leads nowhere, {which}",
                    "No job it counts now has a value there: they share what each value should have.",
                    "See the argument of one of its jobs (`jqmaster get ID`): values have to be enqueued "
                    f"by name, and the path {path} has to lead to one.",
                    constraint_id, {"path": path, "keys": len(keys)},
                )  # fmt: skip


def _paths(facts: Facts) -> Iterator[Finding]:
    for constraint, where, path, jobs in facts.nowhere:
        yield Finding(
            "paths", "note",
            f"constraint {constraint['id']}: {path} ({where}) leads nowhere in {jobs} of the newest jobs",
            "It limits none of them." if where == "match" else "Each counts 1.",
            "See the argument of one of them (`jqmaster get ID`): the path has to lead to a value there.",
            constraint["id"], {"field": where, "path": path, "jobs": jobs},
        )  # fmt: skip


def _schedules(facts: Facts) -> Iterator[Finding]:
    for schedule in facts.schedules:
        if not schedule.get("next_ms") and not schedule.get("paused"):
            reached = schedule.get("limit") and schedule["made"] >= schedule["limit"]
            yield Finding(
                "schedules", "note" if reached else "warning", f"schedule {schedule['id']} never comes again",
                "Its limit is reached." if reached else "Its end is over, or no moment fits it.",
                f"`jqmaster schedules delete {quote(schedule['id'])}`, or set it anew.", schedule["id"],
            )  # fmt: skip


def _lapsed(facts: Facts) -> Iterator[Finding]:
    for queue, count in sorted(facts.lapsed.items()):
        lapsed = count - facts.overran.get(queue, 0)
        if not lapsed:
            continue
        yield Finding(
            "lapsed", "warning", f"queue {queue}: {_number(lapsed, 'lease')} lapsed in the last hour",
            "A worker died, hung or lost its network while it ran a job; the job runs again elsewhere.",
            "Look at the workers' logs (memory, crashes), or give long jobs a longer timeout.", queue,
            {"lapsed": lapsed},
        )  # fmt: skip


def _overran(facts: Facts) -> Iterator[Finding]:
    for queue, overran in sorted(facts.overran.items()):
        title = (
            f"queue {queue}: {_jobs(overran)} ran for {'its' if overran == 1 else 'their'} max_runtime in the last hour"
        )
        means = "An attempt that lasts so long ends; the job is tried again, as long as it has retries."
        do = f"Give them a longer max_runtime, or see what they wait for (`jqmaster jobs --queue {quote(queue)}`)."
        yield Finding("overran", "warning", title, means, do, queue, {"overran": overran})


def _workers(facts: Facts) -> Iterator[Finding]:
    for worker in facts.workers:
        if worker["state"] == "unreachable":
            yield Finding(
                "workers", "warning", f"worker {worker['name']} ({worker['id']}) cannot be reached",
                f"Masters cannot deliver jobs to {worker.get('url')}.",
                "See whether it runs, and whether the masters' hosts can reach that address.", worker["id"],
            )  # fmt: skip


def _failures(facts: Facts) -> Iterator[Finding]:
    for group, recent, more in facts.failing:
        grows = recent >= GROWS
        name = group["group"]
        yield Finding(
            "failures", "warning" if grows else "note",
            f"{name}: {'more than ' if more else ''}{_jobs(recent)} failed for good in the last hour",
            f"{_jobs(group['count'])} in all; the newest says: {_short(group.get('message'))}",
            f"`jqmaster jobs --group {quote(name)}` lists them, "
            f"`jqmaster retry --group {quote(name)}` has them run again.",
            name, {"recent": recent, "count": group["count"]},
        )  # fmt: skip


_PARTS = {
    "queues": "queues",
    "workers": "registered workers",
    "schedules": "schedules",
    "constraints": "constraints",
    "heads": "queues with waiting jobs, for the next of them",
    "due": "queues, for what is overdue",
    "keys": "keys of constraints",
    "samples": "queues, for jobs under constraints",
    "series": "queues, for leases that lapsed",
    "overran": "queues, for jobs that ran for their max_runtime",
    "failures": "groups of failures",
    "groups": "groups that grow",
}


def _whole(facts: Facts) -> Iterator[Finding]:
    if facts.left_out:
        parts = [f"{done:,} {_PARTS[what]}" for what, done in facts.left_out.items()]
        yield Finding(
            "whole", "note", "not all was looked at: it would have taken too long",
            f"Looked at were only {', '.join(parts)}.",
            "What is not told here may be wrong elsewhere: `jqmaster queues` lists all queues.",
            values=dict(facts.left_out),
        )  # fmt: skip


def _short(message: str | None) -> str:
    line = next((one.strip() for one in (message or "").splitlines() if one.strip()), "nothing")
    return line if len(line) <= 120 else line[:119] + "…"


def _number(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _jobs(number: int) -> str:
    return _number(number, "job")


def _wait(number: int) -> str:
    return f"{_jobs(number)} {'waits' if number == 1 else 'wait'}"


def _ago(milliseconds: float) -> str:
    seconds = round(milliseconds / 1000)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
