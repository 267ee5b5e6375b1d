"""How long Redis is blocked by the longest single calls: each at its allowed most, on data made to be dear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any

import msgpack
from kit.engine import NAME, NIL
from kit.hostile import ALL, CALLS, ERROR, FAILURE, MANY, TAGS, Hostile, long, numbered
from kit.server import Server
from kit.tables import Figures, Options, Table
from kit.wire import Wire

FORMS = ("functions", "scripts")
ROWS: dict[str, Callable[[Hostile], None]] = {}


def row(what: str) -> Callable[[Callable[[Hostile], None]], None]:
    """The function's name is of no account: it fills a namespace, and measures some calls."""
    return partial(ROWS.__setitem__, what)


@row("tick: leases lapse in a queue each")
def _(jq: Hostile) -> None:
    jq.in_queues(timeout=10)
    jq.start()
    jq.ticks(20)


@row("tick: leases lapse for good, with 32 tags and unique keys")
def _(jq: Hostile) -> None:
    jq.enqueue([spec | {"tags": TAGS} for spec in numbered(timeout=10, max_retry=0, unique="key{}")])
    jq.start()
    jq.ticks(20)


@row("tick: a dead worker's jobs fail")
def _(jq: Hostile) -> None:
    worker = jq.call("register", {"name": "w", "queues": "*"}).decode()
    jq.many()
    jq.start(worker=worker)
    jq.ticks(60)


@row("tick: delayed jobs get ready in lanes of their own, ten limits")
def _(jq: Hostile) -> None:
    jq.limit(10)
    jq.with_keys(delay=10)
    jq.ticks(20)


@row("tick: delayed jobs get ready in a queue each")
def _(jq: Hostile) -> None:
    jq.in_queues(delay=10)
    jq.ticks(20)


@row("tick: jobs expire")
def _(jq: Hostile) -> None:
    jq.many(expires_in=10)
    jq.ticks(20)


@row("tick: old records go")
def _(jq: Hostile) -> None:
    jq.many(3 * MANY)
    jq.finish(3 * MANY)
    jq.ticks(200_000)


@row("tick: old records go, with errors and 32 tags")
def _(jq: Hostile) -> None:
    jq.many(2 * MANY, tags=TAGS)
    jq.finish(2 * MANY, ERROR, **FAILURE, group="g")
    jq.ticks(4_000_000)


@row("tick: dependents fail, with 32 tags")
def _(jq: Hostile) -> None:
    (first,) = jq.many(1)
    jq.many(depends=[first], if_failed="fail", tags=TAGS)
    jq.finish(1, **FAILURE)
    jq.ticks()


@row("tick: schedules make jobs")
def _(jq: Hostile) -> None:
    for number in range(MANY):
        job = {"name": NAME, "tags": TAGS[:4]}
        jq.call("schedule", {"id": f"s{number}", "cron": "*/5 * * * 1-5", "job": job}, NIL)
    jq.ticks(86_400)


@row("tick: settings changed, 5,000 queues")
def _(jq: Hostile) -> None:
    jq.in_queues()
    jq.finish()
    jq.call("config", {"set": {"done_ttl": 1000}})
    jq.ticks()


@row("tick: keys open")
def _(jq: Hostile) -> None:
    jq.limit(concurrency=1)
    for number in range(MANY):
        jq.call("hold", {"id": "limit0", "by": number, "seconds": 10})
    jq.with_keys()
    jq.start(1)  # until each lane was looked at, and is held
    jq.ticks(20)


@row("tick: delayed jobs of 10 KB get ready, under a limit that reads them")
def _(jq: Hostile) -> None:
    jq.limit(by="argument.key")
    jq.many(delay=10, argument=msgpack.packb({"list": list(range(3000)), "key": 1}))
    jq.ticks(20)


@row("finish: a limit gets room for which jobs of 5,000 queues wait")
def _(jq: Hostile) -> None:
    jq.call("constrain", {"id": "all", "concurrency": 1}, {"name": NAME})
    jq.settle()
    jq.in_queues()
    for _ in range(CALLS):
        ((id, token),) = jq.start(1)
        jq.start(1)  # until each lane was looked at, and is held
        jq.measured("finish", {"worker": "worker"}, {"id": id, "token": token, "type": "success"}, NIL)


@row("enqueue: 100 names that are new, 1,000 limits")
def _(jq: Hostile) -> None:
    for number in range(ALL):
        jq.call("constrain", {"id": f"c{number}", "concurrency": 1}, {"name": f"n{number}"})
    for part in range(CALLS):
        specs = ({"name": f"n{part}-{number}", "queue": NAME} for number in range(100))
        jq.measured("enqueue", *(item for spec in specs for item in (spec, NIL)))


@row("tick: running jobs come under a new limit")
def _(jq: Hostile) -> None:
    jq.with_keys()
    jq.start()
    jq.call("constrain", {"id": "limit", "by": "argument", "concurrency": 2}, {"name": NAME})
    jq.ticks()


@row("pick of 1000 in lanes of their own, ten limits")
def _(jq: Hostile) -> None:
    jq.limit(10)
    jq.with_keys()
    jq.picks()


@row("pick of 1000 of a fair queue")
def _(jq: Hostile) -> None:
    jq.call("queue", {"name": NAME, "fair": {"by": "argument"}})
    jq.with_keys()
    jq.picks()


@row("pick of 1000 over 5,000 queues")
def _(jq: Hostile) -> None:
    jq.in_queues()
    jq.picks("*")


@row("pick of 2 past held lanes")
def _(jq: Hostile) -> None:
    jq.limit(concurrency=1)
    jq.call("constrain", {"id": "all", "concurrency": 1}, {"name": NAME})
    jq.settle()
    jq.with_keys()
    jq.picks(count=2)


@row("pick of 1 past 10,000 queues whose best job went")
def _(jq: Hostile) -> None:
    jq.call("pick", {"worker": "w", "queues": "q*"})
    best = jq.in_queues(2 * MANY, priority=-1)
    jq.in_queues(2 * MANY, priority=1)
    for first in range(0, len(best), ALL):
        jq.call("cancel", {"ids": best[first : first + ALL]})
    jq.settle()
    jq.picks("q*", 1)


@row("pick of 1 with a new pattern, 10,000 queues")
def _(jq: Hostile) -> None:
    jq.in_queues(2 * MANY, priority=-1)
    jq.picks("q*x*x*x*", 1)


@row("pick of 1 while jobs expire")
def _(jq: Hostile) -> None:
    jq.many(expires_in=10)
    jq.pass_s(20)
    jq.picks(count=1)


def filled(jq: Hostile) -> None:
    """Waiting jobs with all that is dear to change."""
    jq.limit(10)
    jq.enqueue([spec | {"tags": TAGS} for spec in numbered(unique="{}")])


@row("cancel: all of a queue, with tags, dependents, ten limits")
def _(jq: Hostile) -> None:
    filled(jq)
    (job, *_) = jq.call("jobs", {"count": 1})[1:]
    jq.many(ALL, queue="other", depends=[msgpack.unpackb(job)["id"]])
    jq.repeated("cancel", where={"queue": NAME}, dependents="cancel")


@row("retry: all of a queue, with tags, ten limits")
def _(jq: Hostile) -> None:
    filled(jq)
    jq.finish(MANY, ERROR, **FAILURE)
    jq.repeated("retry", where={"queue": NAME})


@row("discard: all of a queue, with tags, ten limits")
def _(jq: Hostile) -> None:
    filled(jq)
    jq.repeated("discard", where={"queue": NAME})


@row("jobs: 1000 with tags, headers, errors, messages")
def _(jq: Hostile) -> None:
    jq.many(tags=TAGS, headers={f"h{number}": "v" * 50 for number in range(16)})
    jq.finish(MANY, ERROR, **FAILURE)
    jq.repeated("jobs")


@row("jobs: messages of 64 KB searched")
def _(jq: Hostile) -> None:
    jq.many(ALL)
    jq.finish(ALL, NIL, **FAILURE | {"message": "m" * 65_536})
    jq.repeated("jobs", where={"message": "mmmmmmmmx"})


@row("queues: 1000")
def _(jq: Hostile) -> None:
    jq.in_queues()
    for number in range(ALL):
        jq.call("queue", {"name": long(f"q{number}"), "set": {"done_ttl": 5, "error_max": 7}})
    jq.repeated("queues")


@row("workers: 1000, with 100 jobs each")
def _(jq: Hostile) -> None:
    jq.many(50 * ALL)
    for number in range(ALL):
        worker = jq.call("register", {"name": f"w{number}", "queues": [*(long(f"q{n}") for n in range(9)), "*"]})
        if number < ALL // 2:
            jq.start(100, worker.decode())
    jq.repeated("workers")


@row("usage: 1000 keys")
def _(jq: Hostile) -> None:
    jq.limit(rate={"limit": 100_000, "period": 1000})
    jq.with_keys(2 * MANY)
    jq.start()
    jq.repeated("usage", id="limit0")


@row("constraints: 1000 with matchers of 10 KB")
def _(jq: Hostile) -> None:
    for number in range(ALL):
        match = {"name": f"n{number}", "argument.a": [f"{n:040}" for n in range(200)]}
        jq.call("constrain", {"id": long(f"c{number}"), "concurrency": 1}, match)
    jq.repeated("constraints")


def yearly(jq: Hostile, times: int, cron: str = "*/5 1-23/2 29 2 *") -> None:
    for number in range(ALL):
        job = {"name": NAME, "tags": TAGS}
        jq.call("schedule", {"id": f"s{number}", "cron": cron, "job": job}, ERROR)
    jq.repeated("schedules", next=times)


@row("schedules: 1000 with two moments")
def _(jq: Hostile) -> None:
    yearly(jq, 2)


@row("schedules: 20 with 100 moments")
def _(jq: Hostile) -> None:
    yearly(jq, 100)


@row("schedules: 20 with two moments that are 28 years apart")
def _(jq: Hostile) -> None:
    yearly(jq, 2, "0 0 29 2 */7")


@row("stats: series of 100 pairs over 150 hours")
def _(jq: Hostile) -> None:
    for _ in range(150):
        jq.enqueue([{"name": f"n{pair}"} for pair in range(200)])
        jq.finish(ALL)
        jq.pass_s(3600)
    jq.repeated("stats", by="hour", series=True)


@row("export: 1000 records")
def _(jq: Hostile) -> None:
    jq.many(tags=TAGS)
    jq.repeated("export")


@row("audit: 1000 keys, jobs with tags under ten limits")
def _(jq: Hostile) -> None:
    jq.limit(10)
    jq.with_keys(tags=TAGS)
    jq.start(ALL)
    jq.repeated("audit", cursor="0")


def measure(wire: Wire, fill: Callable[[Hostile], None]) -> Figures:
    found: dict[str, Any] = {}
    for form in FORMS:
        jq = Hostile(wire, form)
        fill(jq)
        found[f"{form}, ms"], found[f"{form}, most"] = median(jq.took_ms), max(jq.took_ms)
    return found


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    wire = stack.enter_context(Server()).wire()
    rows = list(ROWS.items())[:: 4 if options.quick else 1]
    sides = {what: partial(measure, wire, fill) for what, fill in rows}
    note = f"ms of one call, the median of {CALLS}: the lesser of Redis' CPU and of its clock. The bound is 10 ms."
    yield Table("The longest calls", note, sides, rounds=1)
