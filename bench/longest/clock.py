"""What the clock does: leases that lapse, delays that end, results that expire, schedules."""

from __future__ import annotations

from typing import Any

import msgpack
from kit.contenders import NAME, NIL
from kit.hostile import ALL, LONG_S, Hostile, long

from longest.row import CALLS, ERROR, FAILURE, MANY, TAGS, keyed, limited, row, ticks


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
