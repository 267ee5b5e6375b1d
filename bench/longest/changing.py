"""Changing jobs, limits, settings; and what counts or lists them all."""

from __future__ import annotations

from typing import Any

import msgpack
from kit.contenders import NAME, NIL
from kit.hostile import ALL, LONG_S, Hostile, long

from longest.row import CALLS, ERROR, FAILURE, MANY, TAGS, keyed, limited, pages, row


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
