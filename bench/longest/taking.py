"""Taking and giving jobs."""

from __future__ import annotations

from typing import Any

import msgpack
from kit.contenders import NAME, NIL
from kit.hostile import ALL, LONG_S, Hostile, long

from longest.row import CALLS, ERROR, FAILURE, MANY, TAGS, limited, row


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
