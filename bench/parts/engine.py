"""Redis CPU of a job's life by a client that costs nothing, beside the floor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from kit.engine import JQ, Floor
from kit.life import WINDOW, Life, cpu_meter
from kit.server import Server
from kit.tables import Figures, Options, Table
from kit.wire import Wire

MANY = 1_000_000
NOTE = (
    "µs of Redis' CPU for one job, user and system, three calls: one at a time over the connection, pipelined 100 "
    f"deep, and in batches of {WINDOW}. Finish with next holds as many as a call ends, or {WINDOW}."
)


def waiting(jobs: int) -> JQ:
    def fill(wire: Wire, jq: JQ) -> None:
        for _ in range(0, jobs, 10_000):
            wire.pipelined(jq.enqueue(min(jobs, 10_000), 1000), depth=4)

    return JQ(fill=fill)


def measure(wire: Wire, engine: JQ | Floor, jobs: int) -> Figures:
    found, meter = {}, cpu_meter(wire)
    for how, batch, depth in (("singly", 1, 1), ("pipelined", 1, 100), ("batches", WINDOW, 1)):
        life, count = Life(wire, engine, batch, depth), jobs // WINDOW * WINDOW * (4 if batch > 1 else 1)
        found[how] = life.three_calls(count, meter)
        if isinstance(engine, JQ):
            found[f"{how}, finish with next"] = life.with_next(count, meter)
    return found


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    jobs, many = options.count(5_000, 500), options.count(MANY, 20_000)
    engines = {"JQ": JQ(), "JQ as scripts": JQ(form="scripts"), f"JQ, {many:,} wait": waiting(many), "floor": Floor()}
    if options.against:
        engines[f"JQ of {options.against.name}"] = JQ(checkout=options.against)
    sides = {}
    for name, engine in engines.items():
        wire = stack.enter_context(Server()).wire()
        engine.prepare(wire)
        measure(wire, engine, 320)
        sides[name] = partial(measure, wire, engine, jobs)
    yield Table("A job's life by thin calls", f"{NOTE} {jobs} jobs.", sides, "JQ")
