"""How long Redis is blocked by the longest single calls: each at its allowed most, on data made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgpack
from kit.contenders import NAME, NIL
from kit.hostile import ALL, LONG_S, Hostile, long
from kit.options import Options
from kit.report import Target, at_most, table
from kit.server import Server

CALLS = 5
"""of a row; their median counts."""
MANY = CALLS * ALL
LIMIT_MS = 10.0
TAGS = [long(f"tag{number}") for number in range(32)]
ERROR = msgpack.packb("e" * 10_000)
FAILURE = {"type": "failure", "should_retry": False}


@dataclass(frozen=True)
class Row:
    what: str
    operation: str
    run: Callable[[Hostile], None]
    is_sized: bool
    """by the caller, who names each job, or took so many: it is told, and not bounded"""


ROWS: list[Row] = []


def row(what: str, is_sized: bool = False) -> Callable[[Callable[[Hostile], None]], Callable[[Hostile], None]]:
    def add(run: Callable[[Hostile], None]) -> Callable[[Hostile], None]:
        ROWS.append(Row(what, what.split()[0].rstrip(":,"), run, is_sized))
        return run

    return add


def ticks(jq: Hostile) -> None:
    for _ in range(CALLS):
        jq.measured("tick", {"limit": ALL})


def pages(jq: Hostile, operation: str, **spec: Any) -> None:
    cursor = {}
    for _ in range(CALLS):
        reply = jq.measured(operation, {"count": ALL} | spec | cursor)
        cursor = {"cursor": reply[0].decode()}


def limited(jq: Hostile, **spec: Any) -> None:
    given = {"id": "limit", "concurrency": 1_000_000, "by": "argument"} | spec
    jq.call("constrain", given, {"name": NAME})
    jq.settle()


# ---- what the clock does ----


def lapse(jq: Hostile, **spec: Any) -> None:
    jq.many(MANY, **spec, timeout=10)
    jq.start(MANY)
    jq.pass_s(20)
    ticks(jq)


@row("tick: leases lapse")
def _(jq: Hostile) -> None:
    lapse(jq)


@row("tick: leases lapse for good, with 32 tags and unique keys")
def _(jq: Hostile) -> None:
    jq.enqueue([
        {"name": NAME, "timeout": 10, "max_retry": 0, "tags": TAGS, "unique": f"key{number}"}
        for number in range(MANY)
    ])  # fmt: skip
    jq.start(MANY)
    jq.pass_s(20)
    ticks(jq)


@row("tick: leases lapse under ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    lapse(jq)


@row("tick: leases lapse in a queue each")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"queue{number}"), "timeout": 10} for number in range(MANY)])
    jq.start(MANY)
    jq.pass_s(20)
    ticks(jq)


@row("tick: a dead worker's jobs fail")
def _(jq: Hostile) -> None:
    worker = jq.call("register", {"name": "w", "queues": "*"}).decode()
    jq.many(MANY)
    jq.start(MANY, worker)
    jq.pass_s(60)
    ticks(jq)


@row("tick: dead workers go")
def _(jq: Hostile) -> None:
    for number in range(MANY):
        jq.call("register", {"name": f"w{number}", "queues": long(f"q{number}"), "url": f"http://h{number}/"})
    jq.pass_s(60)
    ticks(jq)


@row("tick: scheduled jobs get ready")
def _(jq: Hostile) -> None:
    jq.many(MANY, delay=10)
    jq.pass_s(20)
    ticks(jq)


@row("tick: scheduled jobs get ready in a queue each")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"queue{number}"), "delay": 10} for number in range(MANY)])
    jq.pass_s(20)
    ticks(jq)


@row("tick: scheduled jobs get ready in lanes of their own, ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    jq.many(MANY, delay=10)
    jq.pass_s(20)
    ticks(jq)


@row("tick: retries get ready")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    jq.finish(jq.start(MANY), ERROR, type="failure")
    jq.pass_s(20)
    ticks(jq)


@row("tick: jobs expire")
def _(jq: Hostile) -> None:
    jq.many(MANY, expires_in=10)
    jq.pass_s(20)
    ticks(jq)


@row("tick: jobs in lanes expire, with 32 tags")
def _(jq: Hostile) -> None:
    limited(jq)
    jq.many(MANY, expires_in=10, tags=TAGS)
    jq.pass_s(20)
    ticks(jq)


@row("tick: results go")
def _(jq: Hostile) -> None:
    jq.many(MANY, keep_result=True)
    jq.finish(jq.start(MANY), ERROR)
    jq.pass_s(4000)
    ticks(jq)


@row("tick: old records go")
def _(jq: Hostile) -> None:
    jq.many(3 * MANY)
    jq.finish(jq.start(3 * MANY))
    jq.pass_s(200_000)
    ticks(jq)


@row("tick: old records go, with errors and 32 tags")
def _(jq: Hostile) -> None:
    jq.many(2 * MANY, tags=TAGS)
    jq.finish(jq.start(2 * MANY), ERROR, **FAILURE, message="m" * 1000, group="g")
    jq.pass_s(4_000_000)
    ticks(jq)


@row("tick: dependents are unblocked")
def _(jq: Hostile) -> None:
    (first,) = jq.many(1)
    jq.many(MANY, depends=[first])
    jq.finish(jq.start(1))
    ticks(jq)


@row("tick: dependents fail, with 32 tags")
def _(jq: Hostile) -> None:
    (first,) = jq.many(1)
    jq.many(MANY, depends=[first], if_failed="fail", tags=TAGS)
    jq.finish(jq.start(1), **FAILURE)
    ticks(jq)


@row("tick: unique keys are free")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "unique": long(f"k{n}"), "unique_for": 10} for n in range(MANY)])
    jq.finish(jq.start(MANY))
    jq.pass_s(20)
    jq.call("config", {"set": {"done_ttl": LONG_S, "done_max": 1_000_000}})
    jq.settle()
    jq.many(1, unique="z", unique_for=10)
    ticks(jq)


@row("tick: schedules make jobs")
def _(jq: Hostile) -> None:
    for number in range(MANY):
        job = {"name": NAME, "tags": TAGS[:4]}
        jq.call("schedule", {"id": f"s{number}", "cron": "*/5 * * * 1-5", "job": job}, NIL)
    jq.pass_s(86_400)
    ticks(jq)


@row("tick: a schedule catches up")
def _(jq: Hostile) -> None:
    for number in range(CALLS):
        spec = {"id": f"s{number}", "cron": "0 0 29 2 *", "start": 0, "catch_up": "all", "backlog": ALL}
        spec = spec | {"cron": "*/7 1-23/2 * * 1,3,5"}
        jq.call("schedule", spec | {"job": {"name": NAME, "tags": TAGS}}, NIL)
    jq.pass_s(10_000_000)
    ticks(jq)


@row("tick: settings changed, 5,000 queues")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"queue{number}"), "timeout": LONG_S} for number in range(MANY)])
    jq.finish(jq.start(MANY))
    jq.call("config", {"set": {"done_ttl": 1000}})
    ticks(jq)


@row("tick: keys open")
def _(jq: Hostile) -> None:
    limited(jq, concurrency=1)
    for number in range(MANY):
        jq.call("hold", {"id": "limit", "by": number, "seconds": 10})
    arguments = [item for n in range(MANY) for item in ({"name": NAME}, msgpack.packb(n))]
    for first in range(0, 2 * MANY, 2 * ALL):
        jq.call("enqueue", *arguments[first : first + 2 * ALL])
    jq.start(1)  # until each lane was looked at, and is held
    jq.pass_s(20)
    ticks(jq)


@row("tick: a constraint's new limits")
def _(jq: Hostile) -> None:
    keyed(jq, concurrency=1)
    jq.call("constrain", {"id": "limit", "by": "argument", "concurrency": 2}, {"name": NAME})
    ticks(jq)


@row("tick: running jobs take units of a new constraint")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    jq.start(MANY)
    jq.call("constrain", {"id": "limit", "by": "argument", "concurrency": 2}, {"name": NAME})
    ticks(jq)


def keyed(jq: Hostile, **spec: Any) -> None:
    """A key of its own for each of many jobs; half of them run."""
    limited(jq, **spec)
    for first in range(0, MANY, ALL // 2):
        arguments = []
        for number in range(first, first + ALL // 2):
            arguments += [{"name": NAME, "timeout": LONG_S}, msgpack.packb(long(f"{number}"))] * 2
        jq.call("enqueue", *arguments)
    jq.start(MANY)


# ---- taking and giving jobs ----


def picks(jq: Hostile, **spec: Any) -> None:
    for _ in range(CALLS):
        jq.measured("pick", {"worker": "worker", "queues": "*", "count": ALL} | spec)


@row("pick of 1000", is_sized=True)
def _(jq: Hostile) -> None:
    jq.many(MANY, argument=ERROR[:200])
    picks(jq, queues=NAME)


@row("pick of 1000 in lanes of their own, ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    for first in range(0, MANY, ALL):
        arguments = [({"name": NAME, "timeout": LONG_S}, msgpack.packb(first + n)) for n in range(ALL)]
        jq.call("enqueue", *[item for pair in arguments for item in pair])
    picks(jq, queues=NAME)


@row("pick of 1000 of a fair queue")
def _(jq: Hostile) -> None:
    jq.call("queue", {"name": NAME, "fair": [{"by": "argument"}]})
    for first in range(0, MANY, ALL):
        arguments = [({"name": NAME, "timeout": LONG_S}, msgpack.packb(first + n)) for n in range(ALL)]
        jq.call("enqueue", *[item for pair in arguments for item in pair])
    picks(jq, queues=NAME)


@row("pick of 1000 over 5,000 queues")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"queue{number}"), "timeout": LONG_S} for number in range(MANY)])
    picks(jq)


@row("pick of 1 while jobs expire")
def _(jq: Hostile) -> None:
    jq.many(MANY, expires_in=10)
    jq.pass_s(20)
    picks(jq, count=1, queues=NAME)


@row("pick of 1 past held lanes")
def _(jq: Hostile) -> None:
    limited(jq, concurrency=1)
    jq.call("constrain", {"id": "all", "concurrency": 1}, {"name": NAME})
    jq.settle()
    for first in range(0, MANY, ALL):
        arguments = [({"name": NAME, "timeout": LONG_S}, msgpack.packb(first + n)) for n in range(ALL)]
        jq.call("enqueue", *[item for pair in arguments for item in pair])
    picks(jq, count=2, queues=NAME)


@row("pick of 1 past 10,000 queues whose best job went")
def _(jq: Hostile) -> None:
    jq.call("pick", {"worker": "w", "queues": "q*"})
    made = jq.enqueue([{"name": NAME, "queue": long(f"q{number}"), "priority": -1} for number in range(2 * MANY)])
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}"), "priority": 1} for number in range(2 * MANY)])
    for first in range(0, len(made), ALL):
        jq.call("cancel", {"ids": made[first : first + ALL]})
    jq.settle()
    picks(jq, count=1, queues="q*")


@row("pick of 1 with a new pattern, 10,000 queues")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}"), "priority": -1} for number in range(2 * MANY)])
    picks(jq, count=1, queues="q*x*x*x*")


@row("pick of 1 while a queue is looked through")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    limited(jq, concurrency=1)
    picks(jq, count=10, queues=NAME)


@row("finish of 1000", is_sized=True)
def _(jq: Hostile) -> None:
    jq.many(MANY)
    for arguments in jq.outcomes(jq.start(MANY)):
        jq.measured("finish", *arguments)


@row("finish of 1000 failures with 32 tags", is_sized=True)
def _(jq: Hostile) -> None:
    jq.many(MANY, tags=TAGS)
    for arguments in jq.outcomes(jq.start(MANY), **FAILURE, message="m" * 1000, group="g"):
        jq.measured("finish", *arguments)


@row("enqueue of 1000", is_sized=True)
def _(jq: Hostile) -> None:
    for _ in range(CALLS):
        jq.measured("enqueue", *[{"name": NAME}, NIL] * ALL)


@row("enqueue of 1000 with tags, unique keys, dependencies, ten constraints", is_sized=True)
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    first = jq.many(1)
    for call in range(CALLS):
        specs = [{"name": NAME, "tags": TAGS, "unique": f"{call} {n}", "depends": first} for n in range(ALL)]
        jq.measured("enqueue", *[item for spec in specs for item in (spec, NIL)])


# ---- looking ----


@row("jobs: 1000, plain")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    pages(jq, "jobs")


@row("jobs: 1000 with tags, headers, errors, messages")
def _(jq: Hostile) -> None:
    headers = {f"h{number}": "v" * 50 for number in range(16)}
    jq.many(MANY, tags=TAGS, headers=headers)
    jq.finish(jq.start(MANY), ERROR, **FAILURE, message="m" * 1000)
    pages(jq, "jobs")


@row("jobs: messages of 64 KB looked into")
def _(jq: Hostile) -> None:
    jq.many(MANY // 5)
    jq.finish(jq.start(MANY // 5), NIL, **FAILURE, message="m" * 65_536)
    for _ in range(CALLS):
        jq.measured("jobs", {"where": {"message": "mmmmmmmmx"}, "count": ALL})


@row("jobs: arguments of 100 KB")
def _(jq: Hostile) -> None:
    jq.many(MANY // 5, argument=msgpack.packb(b"a" * 100_000))
    for _ in range(CALLS):
        jq.measured("jobs", {"count": ALL})


@row("jobs: none of 5,000 empty queues")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}")} for number in range(MANY)])
    pages(jq, "jobs", where={"status": "retrying"})


@row("jobs: those that have a tag, none of a name")
def _(jq: Hostile) -> None:
    jq.many(MANY, tags=TAGS)
    pages(jq, "jobs", where={"tag": TAGS[31], "name": "none"})


@row("get of 1000 with tags, headers", is_sized=True)
def _(jq: Hostile) -> None:
    ids = jq.many(ALL, tags=TAGS)
    for _ in range(CALLS):
        jq.measured("get", *ids)


def changes(jq: Hostile, operation: str, **spec: Any) -> None:
    cursor = {}
    for _ in range(CALLS):
        reply = jq.measured(operation, {"where": {"queue": NAME}, "count": ALL} | spec | cursor)
        cursor = {"cursor": reply[0].decode()}


@row("cancel: all of a queue, with tags, dependents, ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    made = jq.enqueue([{"name": NAME, "tags": TAGS, "unique": f"{n}"} for n in range(ALL)])
    for id in made:
        jq.many(1, queue="other", depends=[id])
    changes(jq, "cancel", dependents="cancel")


@row("retry: all of a queue, with tags, ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    jq.enqueue([{"name": NAME, "tags": TAGS, "unique": f"{n}", "timeout": LONG_S} for n in range(ALL)])
    jq.finish(jq.start(ALL), ERROR, **FAILURE, message="m" * 1000)
    changes(jq, "retry")


@row("discard: all of a queue, with tags, ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    jq.enqueue([{"name": NAME, "tags": TAGS, "unique": f"{n}", "timeout": LONG_S} for n in range(ALL)])
    changes(jq, "discard")


@row("kick of 1000 of a queue")
def _(jq: Hostile) -> None:
    limited(jq)
    jq.many(MANY)
    jq.start(MANY)
    for _ in range(CALLS):
        jq.measured("kick", {"queue": NAME, "count": ALL})


@row("unregister: a worker with 1000 jobs", is_sized=True)
def _(jq: Hostile) -> None:
    jq.many(MANY)
    for number in range(CALLS):
        worker = jq.call("register", {"name": f"w{number}", "queues": "*"}).decode()
        jq.start(ALL, worker)
        jq.measured("unregister", {"worker": worker})


@row("queues: 1000")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}")} for number in range(MANY)])
    for number in range(ALL):
        jq.call("queue", {"name": long(f"q{number}"), "set": {"done_ttl": 5, "error_max": 7}})
    pages(jq, "queues")


@row("workers: 1000, 100 jobs each")
def _(jq: Hostile) -> None:
    jq.many(50 * ALL)
    for number in range(ALL):
        worker = jq.call("register", {"name": f"w{number}", "queues": [long(f"q{n}") for n in range(9)] + ["*"]})
        if number < 500:
            jq.start(100, worker.decode())
    for _ in range(CALLS):
        jq.measured("workers", {"count": ALL})


@row("usage: 1000 keys")
def _(jq: Hostile) -> None:
    keyed(jq, concurrency=1, rate={"limit": 100_000, "period": 1000})
    pages(jq, "usage", id="limit")


@row("usage: 1000 lanes of a key in each of 100 queues")
def _(jq: Hostile) -> None:
    jq.call("constrain", {"id": "all", "concurrency": 1}, {"name": NAME})
    jq.call("constrain", {"id": "by", "concurrency": 1, "by": "argument"}, {"name": NAME})
    for number in range(50):
        arguments = []
        for value in range(1000):
            arguments += [{"name": NAME, "queue": f"q{number}", "timeout": LONG_S}, msgpack.packb(value)]
        jq.call("enqueue", *arguments)
    jq.start(2)
    for _ in range(CALLS):
        jq.measured("usage", {"id": "all"})


@row("tags: 1000")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "tags": [long(f"t{n}-{m}") for m in range(5)]} for n in range(ALL)])
    pages(jq, "tags")


@row("failures: 1000 groups, messages of 64 KB")
def _(jq: Hostile) -> None:
    jq.many(ALL)
    for number, token in enumerate(jq.start(ALL)):
        jq.finish([token], NIL, **FAILURE, message="m" * 65_536, group=long(f"g{number}"))
    for _ in range(CALLS):
        jq.measured("failures", {"count": ALL})


@row("constraints: 1000 with matchers of 10 KB")
def _(jq: Hostile) -> None:
    for number in range(ALL):
        match = {"name": f"n{number}", "argument.a": [f"{n:040}" for n in range(200)]}
        jq.call("constrain", {"id": long(f"c{number}"), "concurrency": 1}, match)
    for _ in range(CALLS):
        jq.measured("constraints", {"count": ALL})


@row("schedules: 1000 with two moments")
def _(jq: Hostile) -> None:
    for number in range(ALL):
        job = {"name": NAME, "tags": TAGS}
        jq.call("schedule", {"id": f"s{number}", "cron": "*/5 1-23/2 29 2 *", "job": job}, ERROR)
    for _ in range(CALLS):
        jq.measured("schedules", {"count": ALL, "next": 2})


@row("schedules: 20 with 100 moments")
def _(jq: Hostile) -> None:
    for number in range(ALL):
        jq.call("schedule", {"id": f"s{number}", "cron": "59 23 29 2 *", "job": {"name": NAME}}, NIL)
    for _ in range(CALLS):
        jq.measured("schedules", {"count": ALL, "next": 100})


def counted(jq: Hostile, pairs: int = 1) -> None:
    """Something in each of 150 hours, with many steps of the histogram."""
    for _ in range(150):
        for pair in range(pairs):
            jq.many(1, name=f"n{pair}", timeout=LONG_S)
        for step in range(20 if pairs == 1 else 1):
            jq.many(1, name="n0")
            jq.pass_s(1.5**step)
        jq.finish(jq.start(ALL, queues="*"))
        jq.pass_s(3600)


@row("stats: 150 hours")
def _(jq: Hostile) -> None:
    counted(jq)
    for _ in range(CALLS):
        jq.measured("stats", {"by": "hour"})


@row("stats: series of 100 pairs over 150 hours")
def _(jq: Hostile) -> None:
    counted(jq, 200)
    for _ in range(CALLS):
        jq.measured("stats", {"by": "hour", "series": True, "count": ALL})


@row("export: 1000 records")
def _(jq: Hostile) -> None:
    jq.many(MANY, tags=TAGS)
    pages(jq, "export")


@row("export: large sets")
def _(jq: Hostile) -> None:
    jq.many(10 * MANY)
    for key in jq.wire.call("KEYS", "{jq}:j:*") + jq.wire.call("KEYS", "{jq}:a:*"):
        jq.wire.call("DEL", key)
    pages(jq, "export")


@row("audit: 1000 keys, jobs with tags under ten constraints")
def _(jq: Hostile) -> None:
    for number in range(10):
        limited(jq, id=f"limit{number}")
    jq.many(MANY, tags=TAGS)
    jq.start(ALL)
    cursor = "0"
    for _ in range(CALLS):
        cursor = jq.measured("audit", {"count": ALL, "cursor": cursor})[0].decode()


@row("audit: a set of 10,000 jobs")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    jq.start(MANY // 2)
    cursor = "0"
    for _ in range(100_000):
        cursor = jq.measured("audit", {"count": 1, "cursor": cursor})[0].decode()
        if cursor == "0":
            break
    jq.found_us = sorted(jq.found_us)[-1:]


@row("constrain: 1000 queues wait")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}")} for number in range(MANY)])
    for number in range(CALLS):
        jq.measured("constrain", {"id": f"c{number}", "concurrency": 1}, {"name": NAME})


def run(options: Options) -> list[dict[str, Any]]:
    found = []
    with Server() as server:
        wire = server.wire()
        for one in ROWS:
            if options.rows and not any(one.what.startswith(name) for name in options.rows):
                continue
            if options.targets and one.is_sized:
                continue
            result: dict[str, Any] = {"what": one.what, "is_sized": one.is_sized}
            for form in ("functions", "scripts"):
                jq = Hostile(wire, form)
                if form == "functions" and one.operation not in jq.functions:
                    continue
                one.run(jq)
                result[form] = median(jq.found_us) / 1000
                result[f"{form} most"] = max(jq.found_us) / 1000
            found.append(result)
            print(line(result), flush=True)
    return found


def line(found: dict[str, Any]) -> str:
    forms = [form for form in ("functions", "scripts") if form in found]
    return found["what"] + ": " + ", ".join(f"{f} {found[f]:.2f} ({found[f'{f} most']:.2f}) ms" for f in forms)


def longest(found: dict[str, Any]) -> float:
    return max(found[form] for form in ("functions", "scripts") if form in found)


def targets(found: list[dict[str, Any]]) -> list[Target]:
    bounded = max((one for one in found if not one["is_sized"]), key=longest, default=None)
    what = f"the longest bounded call ({bounded['what']})" if bounded else ""
    return [at_most(what, longest(bounded), LIMIT_MS, " ms")] if bounded else []


def markdown(found: list[dict[str, Any]]) -> str:
    rows = [[one["what"] + (" *" if one["is_sized"] else ""), one.get("functions"), one["scripts"]] for one in found]
    text = f"Redis CPU ms of one call, the median of {CALLS}. * sized by its caller."
    return table(["", "functions", "scripts"], rows) + "\n\n" + text
