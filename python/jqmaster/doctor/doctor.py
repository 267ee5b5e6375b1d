"""What is wrong with a namespace and its Redis, and what to do about it.

`examine` gathers facts and runs every check over them. The checks are plain functions from facts to what is
found, here those of the namespace, in `redis_side` those of Redis. The command `jqmaster doctor` prints findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

from jqmaster.doctor import redis_side
from jqmaster.doctor.facts import Facts, Source, gather
from jqmaster.doctor.finding import Checks, Finding, Found, Level
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.replies import Document

ORDER: tuple[Level, ...] = ("problem", "warning", "note", "ok")

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
PATIENCE_MS = 10_000  # what is due is done within this time where anybody sweeps
LATE_MS = 10 * _MINUTE_MS
LONG_MS = _HOUR_MS
GROWS = 10  # failures of a group in an hour


async def examine(source: Source, server: Any = None) -> list[Finding]:
    """All findings, the worst first. `server`: what `redis_side.look` found; None where Redis itself cannot
    be asked. Raises what the source does."""
    facts = await gather(source, None if server is None else server.now_ms)
    found = [] if server is None else list(redis_side.check.of(server))
    found += check.of(facts)
    return sorted(found, key=lambda finding: ORDER.index(finding.level))


async def look(engine: Operations) -> list[Finding]:
    """All findings, straight on Redis or by way of a master, which tells nothing of its Redis."""
    server = await redis_side.look(engine) if isinstance(engine, Engine) else None
    if server is not None and server.trouble:
        return sorted(redis_side.check.of(server), key=lambda finding: ORDER.index(finding.level))
    return await examine(Source(engine), server)


def is_wrong(findings: list[Finding]) -> bool:
    return any(finding.level in ("problem", "warning") for finding in findings)


check = Checks()


@check("sweeping", "what is due is done in time")
def _sweeping(facts: Facts) -> Iterator[Found]:
    means = "Nobody sweeps: neither a master nor a worker that pulls is there, or none of them gets through."
    do = "Start a master (`jqmaster serve`) or a worker."
    late = [job for job in facts.due if facts.now_ms - job["due_ms"] > PATIENCE_MS]
    for job in late[:3]:
        kind = "a lapsed lease" if job["status"] == "running" else f"a {job['status']} job"
        title = f"queue {_quoted(job['queue'])}: {kind} has been overdue for {_ago(facts.now_ms - job['due_ms'])}"
        yield "problem", title, means, do, job["queue"], {"job": job["id"]}, job["due_ms"]
    for schedule in facts.schedules:
        next_ms = schedule.get("next_ms")
        if next_ms and facts.now_ms - next_ms > PATIENCE_MS:
            title = f"schedule {schedule['id']} has been overdue for {_ago(facts.now_ms - next_ms)}"
            yield "problem", title, means, do, schedule["id"], {}, next_ms


def _waiting(facts: Facts, *causes: str) -> Iterator[tuple[Document, int]]:
    """Queues whose oldest ready job waits because of these, and for how long it has."""
    for queue in facts.queues:
        if queue.get("cause") in causes:
            yield queue, facts.now_ms - queue["oldest_ready_ms"]


@check("unserved", "every queue with waiting jobs is served")
def _unserved(facts: Facts) -> Iterator[Found]:
    for queue, age_ms in _waiting(facts, "no worker"):
        name, queued = queue["name"], queue["queued"]
        title = f"nobody serves queue {_quoted(name)}, where {_wait(queued)}"
        means = f"No worker is registered for it, and none waits for its jobs; the next has waited for {_ago(age_ms)}."
        do = f"Start a worker that names the queue {quote(name)}, or see whether its workers name another."
        yield "problem", title, means, do, name, {"queued": queued, "waits_ms": age_ms}, queue["oldest_ready_ms"]


@check("unknown", "some worker of each queue knows its next job")
def _unknown(facts: Facts) -> Iterator[Found]:
    for queue, age_ms in _waiting(facts, "unknown job"):
        name, job = queue["name"], queue["unknown"]
        title = f"no worker that serves queue {_quoted(name)} knows jobs named {_quoted(job)}"
        means = f"All of them refused it; it has waited for {_ago(age_ms)}. It costs no retry."
        do = f"Start a worker of a program that has it, or `jqmaster cancel --queue {quote(name)} --name {quote(job)}`."
        yield "problem", title, means, do, name, {"waits_ms": age_ms}, queue["oldest_ready_ms"]


@check("late", "no queue is far behind")
def _late(facts: Facts) -> Iterator[Found]:
    for queue, age_ms in _waiting(facts, "slow", "constraint"):
        if age_ms >= LATE_MS:
            name, is_held = queue["name"], queue["cause"] == "constraint"
            means, do = (
                "Its workers are slower than its jobs come.",
                "Start more workers for it, or give them more slots.",
            )
            if is_held:
                means = f"It is held by {', '.join(queue['held_by'])}."
                do = f"See `jqmaster limits show {quote(queue['held_by'][0])}`."
            title = f"queue {_quoted(name)}: the next job has waited for {_ago(age_ms)}; {_wait(queue['queued'])}"
            cause = "constraints" if is_held else "workers"
            yield "warning", title, means, do, name, {"waits_ms": age_ms, "cause": cause}, queue["oldest_ready_ms"]


@check("paused", "no paused queue has waiting jobs")
def _paused(facts: Facts) -> Iterator[Found]:
    for queue in facts.queues:
        name, waiting = queue["name"], queue["queued"]
        if queue["paused"] and waiting:
            means, do = "A paused queue takes jobs and starts none.", f"`jqmaster queues resume {quote(name)}`"
            yield (
                "warning",
                f"queue {_quoted(name)} is paused, and {_wait(waiting)}",
                means,
                do,
                name,
                {"queued": waiting},
            )


@check("full", "no queue is full")
def _full(facts: Facts) -> Iterator[Found]:
    for queue in facts.queues:
        name, most = queue["name"], queue["max_waiting"]
        waiting = sum(queue[state] for state in ("queued", "scheduled", "blocked", "retrying"))
        if most and waiting >= most:
            do = f"Start more workers, or raise the limit: `jqmaster queues set {quote(name)} max_waiting=N`."
            title = f"queue {_quoted(name)} is full: {_wait(waiting)}"
            yield "problem", title, "Whoever enqueues there is refused.", do, name, {"max_waiting": most}


@check("blocked", "no job waits for one that failed")
def _blocked(facts: Facts) -> Iterator[Found]:
    for job, failed in facts.stuck:
        title = f"job {job['id']} ({job['name']}) waits for {failed['id']}: {failed['status']}"
        means = "It stays blocked until that job was retried and is done (if_failed is wait)."
        do = f"`jqmaster retry {failed['id']}`, or `jqmaster cancel {job['id']}`."
        yield "problem", title, means, do, job["id"], {"queue": job["queue"]}, failed.get("ended_ms")


@check("constraints", "no constraint is closed for long")
def _constraints(facts: Facts) -> Iterator[Found]:
    for constraint, key in facts.keys:
        name = constraint["id"] + (f" (key {key['by']})" if "by" in key else "")
        held = key.get("held") or 0
        closed_ms = (key.get("opens_ms") or 0) - facts.now_ms
        is_hold = (key.get("hold_ms") or 0) > facts.now_ms
        if closed_ms > LONG_MS:
            by = f" --by {quote(json.dumps(key['by'], default=str))}" if "by" in key else ""
            is_closed = f"is {'on hold' if is_hold else 'closed'} for another {_ago(closed_ms)}"
            means = "Nothing starts under it, or under this key, before."
            do = f"`jqmaster limits hold {quote(constraint['id'])} 0{by}` opens what was put on hold."
            values = {"opens_ms": key["opens_ms"], "held": held}
            yield "warning", f"constraint {name} {is_closed}, {_jobs(held)} held", means, do, constraint["id"], values
    for constraint_id, job in facts.keepers:
        left_ms = (job.get("due_ms") or 0) - facts.now_ms
        if left_ms > LATE_MS:
            waits = f"others wait for job {job['id']}, which is tried again in {_ago(left_ms)}"
            means = "With a strict order a job that failed keeps its key until it has ended for good."
            do = f"`jqmaster retry {job['id']}` tries it now, `jqmaster cancel {job['id']}` lets the others go on."
            yield "warning", f"constraint {constraint_id}: {waits}", means, do, constraint_id, {"job": job["id"]}


_NOWHERE = {"match": "It limits none of them.", "cost": "Each counts 1.", "by": "They share one key."}


@check("paths", "every constraint finds values at its paths")
def _paths(facts: Facts) -> Iterator[Found]:
    for constraint, where, path, jobs in facts.nowhere:
        title = f"constraint {constraint['id']}: {path} ({where}) leads nowhere in {jobs} of the newest jobs"
        do = "See the argument of one of them (`jqmaster job ID`): the path has to lead to a value there."
        values = {"field": where, "path": path, "jobs": jobs}
        yield "note", title, _NOWHERE[where], do, constraint["id"], values


@check("schedules", "every schedule comes again")
def _schedules(facts: Facts) -> Iterator[Found]:
    for schedule in facts.schedules:
        name = schedule["id"]
        if not schedule.get("next_ms") and not schedule.get("paused"):
            reached = schedule.get("limit") and schedule["made"] >= schedule["limit"]
            means = "Its limit is reached." if reached else "Its end is over, or no moment fits it."
            do = f"`jqmaster schedules delete {quote(name)}`, or set it anew."
            yield "note" if reached else "warning", f"schedule {name} never comes again", means, do, name


@check("lapsed", "no lease lapsed in the last hour")
def _lapsed(facts: Facts) -> Iterator[Found]:
    means = "A worker died, hung or lost its network while it ran a job, or a job ran for its max_runtime."
    for queue, count in sorted(facts.lapsed.items()):
        title = f"queue {_quoted(queue)}: {_number(count, 'lease')} lapsed in the last hour"
        found = f"`jqmaster jobs --queue {quote(queue)} --message max_runtime`"
        do = f"See the workers' logs (memory, crashes), and {found}."
        yield "warning", title, means, do, queue, {"lapsed": count}


@check("workers", "all registered workers can be reached")
def _workers(facts: Facts) -> Iterator[Found]:
    do = "See whether it runs, and whether the masters' hosts can reach that address."
    for worker in facts.workers:
        if worker["state"] == "unreachable":
            title = f"worker {worker['name']} ({worker['id']}) cannot be reached"
            yield "warning", title, f"Masters cannot deliver jobs to {worker.get('url')}.", do, worker["id"]


@check("failures", "no group of failures grows")
def _failures(facts: Facts) -> Iterator[Found]:
    for group, recent, more in facts.failing:
        name, count = group["group"], group["count"]
        title = f"{name}: {'more than ' if more else ''}{_jobs(recent)} failed for good in the last hour"
        means = f"{_jobs(count)} in all; the newest says: {_short(group.get('message'))}"
        these = f"--group {quote(name)}"
        do = f"`jqmaster jobs {these}` lists them, `jqmaster retry {these}` has them run again."
        level: Level = "warning" if recent >= GROWS else "note"
        yield level, title, means, do, name, {"recent": recent, "count": count}, group["first_ms"]


@check("whole", "all was looked at")
def _whole(facts: Facts) -> Iterator[Found]:
    if facts.left_out:
        title = "not all was looked at: it would have taken too long"
        parts = ", ".join(f"{done:,} {what}" for what, done in facts.left_out.items())
        means = f"Looked at were only {parts}."
        do = "What is not told here may be wrong elsewhere: `jqmaster queues` lists all queues."
        yield "note", title, means, do, None, dict(facts.left_out)


def _short(message: str | None) -> str:
    return (message or "").strip().partition("\n")[0][:120] or "nothing"


def _quoted(name: str) -> str:
    """A name of others, so that its blanks are seen."""
    return name if name.strip() == name and "  " not in name else json.dumps(name, ensure_ascii=False)


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
