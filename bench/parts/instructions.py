"""Instructions of a job's life in the whole redis-server: what is passed over the socket, parsed and replied, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import msgpack
from kit.callgrind import CountedServer
from kit.engine import ARGUMENT, JQ, NAME, Floor, Spec
from kit.life import WINDOW, Life, Meter
from kit.peers import has_bullmq
from kit.programs import driver
from kit.tables import Figures, Options, Table
from kit.wire import Wire

Form = Literal["functions", "scripts"]
BATCH = 100
OPEN = 10_000  # no bench reaches that limit: what is measured is the keeping of accounts
FOREVER_S = 31_000_000


def given(spec: Callable[[int], Spec]) -> Callable[[Form], JQ]:
    return lambda form: JQ(spec, form=form)


KINDS: dict[str, Callable[[Form], JQ]] = {
    "JQ": given(lambda number: {}),
    "a different spec for each job": given(lambda number: {"timeout": 30 + number / 1000}),
    "one tag": given(lambda number: {"tags": ["t"]}),
    "a unique key": given(lambda number: {"unique": f"key {number}"}),
    "one limit": lambda form: JQ(constraints=[({"id": "one", "concurrency": OPEN}, {"name": NAME})], form=form),
}


def counting(server: CountedServer) -> Meter:
    """In thousands."""

    def meter(action: Callable[[], Any]) -> float:
        server.zero()
        action()
        return server.count().total / 1000

    return meter


def lives(engine: JQ | Floor, jobs: int, running: int = 0) -> Figures:
    """Each on a server of its own: what was left in Lua or malloc would be counted."""
    found = {}
    for what, batch in (("three calls", 1), ("finish with next", 1), (f"batches of {BATCH}", BATCH)):
        with CountedServer() as server:
            life = Life(server.wire(), engine, batch)
            engine.prepare(life.wire)
            if what != "finish with next":
                life.three_calls(4 * batch, counting(server))
                found[what] = life.three_calls(jobs, counting(server), running)
            elif isinstance(engine, JQ):
                found[what] = life.with_next(jobs, counting(server))
    return found


def driven(program: str, jobs: int) -> Figures:
    """A client and a worker with 32 slots, from its start to its end, with all that they call."""
    with CountedServer() as server, driver(program, server.path) as client:
        meter = counting(server)
        client.step("enqueue", WINDOW)
        client.step("work", WINDOW)
        enqueued = meter(lambda: client.step("enqueue", jobs))
        return {"client and worker": (enqueued + meter(lambda: client.step("work", jobs))) / jobs}


def attempts(jobs: int, second: bool) -> Figures:
    """Pick and finish of jobs that never ran, or that failed once."""
    with CountedServer() as server:
        jq = JQ(lambda number: {"retry_base": 0})
        life = Life(server.wire(), jq)
        jq.prepare(life.wire)
        life.enqueue(jobs)
        if second:
            life.send(jq.finish(life.pick(jobs), 1, type="failure"))
        return {"pick and finish": counting(server)(lambda: life.finish(life.pick(jobs))) / jobs}


def argument(customer: str, country: str) -> bytes:
    packed: bytes = msgpack.packb({"customer": customer, "country": country, "text": "a" * 160})
    return packed


def held(jobs: int, batch: int, picks: int) -> float:
    """Pick of free jobs behind so many that a limit holds, which matches others: half of one key, half of 999."""
    closed = [argument(f"closed {number}", "JP") for number in range(1000)]

    def fill(wire: Wire, jq: JQ) -> None:
        free, jq.argument = jq.argument, lambda number: closed[number // 2 % len(closed) * (number % 2)]
        for number in range(len(closed)):
            wire.send(jq.command("hold", {"id": "limit", "by": f"closed {number}", "seconds": FOREVER_S}))
        wire.pipelined(jq.enqueue(jobs, 1000), depth=4)
        jq.argument = free
        wire.pipelined(jq.enqueue(1, 1))
        for _ in range(10_000):  # until each lane was looked at once, and is known to be held
            if tokens := jq.picked(wire.pipelined(jq.pick(1, 1))):
                wire.pipelined(jq.finish(tokens, 1))
                return
        raise RuntimeError("no job came in 10,000 picks")

    spec = {"id": "limit", "by": "argument.customer", "concurrency": OPEN}
    jq = JQ(constraints=[(spec, {"argument.country": "JP"})], argument=lambda number: argument("free", "DE"), fill=fill)
    with CountedServer() as server:
        life = Life(server.wire(), jq, batch)
        jq.prepare(life.wire)
        life.three_calls(4 * batch, counting(server))
        life.enqueue(picks)
        return counting(server)(lambda: life.pick(picks)) / picks


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    jobs = options.count(1600, 200)
    sides: dict[str, Callable[[], Figures]] = {
        "JQ": partial(lives, JQ(), jobs),
        f"JQ, {WINDOW} running": partial(lives, JQ(), jobs, WINDOW),
        f"JQ, {WINDOW} running, as a worker calls": partial(lives, JQ(as_worker=True), jobs, WINDOW),
        "JQ as scripts": partial(lives, JQ(form="scripts"), jobs),
        "floor": partial(lives, Floor(), jobs),
    }
    if options.against:
        sides[f"JQ of {options.against.name}"] = partial(lives, JQ(checkout=options.against), jobs)
    sides["JQ's library"] = partial(driven, "with_jq.py", jobs)
    if options.peers and has_bullmq():
        sides["BullMQ"] = partial(driven, "bullmq.js", jobs)
    note = (
        f"Thousands of instructions for one job with an argument of {len(ARGUMENT)} bytes, {jobs} jobs, calls "
        f"pipelined 100 deep. All run before one is finished, or {WINDOW}; finish with next holds {WINDOW}. "
        "As a worker calls: registered, of a list of queues, with a wait and request tokens. The "
        "library and BullMQ: with all that a client and a worker with 32 slots call; JQ's ends several jobs in a call."
    )
    yield Table("A job's life", note, sides, "JQ", rounds=1)

    jobs = options.count(400, 100)
    sides = {name: partial(lives, kind("functions"), jobs) for name, kind in KINDS.items()}
    yield Table("By what jobs use", f"As above, {jobs} jobs.", sides, "JQ", rounds=1)

    sides = {name: partial(attempts, jobs, second) for name, second in (("first attempt", False), ("second", True))}
    yield Table("A retry", "As above.", sides, "first attempt", rounds=1)

    waiting = options.count(10_000, 2_000)
    sides = {
        name: lambda count=count: {
            "singly": held(count, 1, jobs), f"batches of {BATCH}": held(count, BATCH, jobs)
        }
        for name, count in (("none held", 0), (f"{waiting:,} held", waiting))
    }  # fmt: skip
    yield Table("Pick beside jobs that a limit holds", "As above; the limit does not match what is picked.", sides,
                "none held", rounds=1)  # fmt: skip
