"""Instructions in Redis for the life of a job as our own workers call it, over the bench's own calls.

These have the least specs there are. What a client adds (a list of one queue, a token for repeating, a wish
to sleep, heartbeats and subscriptions, a master's own calls) must cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from kit import node_example
from kit.callgrind import CountedServer
from kit.contenders import JQ
from kit.counting import expect
from kit.options import Options
from kit.processes import Driver, free_port, library, start_master
from kit.report import Target, at_most, table
from kit.server import Server
from kit.wire import Wire

LIMIT = 1.05
WARM_UP = 20


@dataclass(frozen=True)
class Row:
    """``together``: jobs that one finish ends while ``slots`` run; it fetches as many."""

    what: str
    caller: str
    slots: int
    together: int


ROWS = [
    Row("library on Redis, one at a time", "library", 1, 1),
    Row("library on Redis, 32 at a time", "library", 32, 16),
    Row("library by HTTP, one at a time", "http", 1, 1),
    Row("library by HTTP, 32 at a time", "http", 32, 16),
    Row("Node example, 10 at a time", "node", 10, 1),
]
Counts = dict[str, float]
"""Ir per job: enqueue, work, life"""


def counted(server: CountedServer, jobs: int, action: Callable[[], Any]) -> float:
    server.zero()
    action()
    return server.count().total / jobs


def life(enqueue: float, work: float) -> Counts:
    return {"enqueue": enqueue, "work": work, "life": enqueue + work}


def work(wire: Wire, jq: JQ, jobs: int, row: Row) -> None:
    """As a worker with as many slots does it: fetch, then finish fetching the next, until nothing comes."""
    done = 0
    tokens = jq.picked(wire.pipelined(jq.pick(row.slots, row.slots)), row.slots)
    while tokens:
        part, tokens = tokens[: row.together], tokens[row.together :]
        replies = wire.one_by_one(jq.finish_next(part, row.together))
        done += jq.finished(replies)
        tokens += jq.picked_next(replies, row.together)
    expect(done, jobs, "bench")


def own(row: Row, jobs: int, form: str) -> Counts:
    with CountedServer() as server:
        wire, jq = server.wire(), JQ(form=form)
        jq.prepare(wire)
        commands = jq.enqueue(jobs, 1)
        wire.one_by_one(commands[:WARM_UP])
        enqueue = counted(server, jobs, lambda: wire.one_by_one(commands))
        return life(enqueue, counted(server, jobs + WARM_UP, lambda: work(wire, jq, jobs + WARM_UP, row)))


def start(stack: ExitStack, server: Server, caller: str, form: str) -> Driver:
    url = f"unix://{server.path}"
    JQ(form=form).prepare(server.wire())  # what a library of functions needs to be warm
    with library(url) as loading:
        loading.step("load")
    if caller == "node":
        return stack.enter_context(node_example.node_example(server.path))
    if caller == "http":
        port = free_port()
        stack.enter_context(start_master(server.path, port))
        url = f"http://127.0.0.1:{port}"
    return stack.enter_context(library(url))


def theirs(row: Row, jobs: int, form: str) -> Counts:
    """No worker comes before the enqueues are counted: one that sleeps makes them dearer."""
    with ExitStack() as stack:
        server = stack.enter_context(CountedServer())
        driver = start(stack, server, row.caller, form)
        driver.step("enqueue", WARM_UP)
        enqueue = counted(server, jobs, lambda: driver.step("enqueue", jobs))
        working = ("work", jobs + WARM_UP, row.slots)
        return life(enqueue, counted(server, jobs + WARM_UP, lambda: driver.step(*working)))


def run(options: Options) -> dict[str, Any]:
    jobs = options.scaled(600, 150, 400)
    why = node_example.install()
    if why:
        print(f"without the Node example: {why}")
    found = []
    bases: dict[tuple[int, int], Counts] = {}
    for row in ROWS:
        if row.caller == "node" and why:
            continue
        shape = row.slots, row.together
        base = bases[shape] = bases.get(shape) or own(row, jobs, options.form)
        counts = theirs(row, jobs, options.form)
        found.append({"what": row.what, "base": base, "counts": counts})
        print(f"{row.what}: {base['life']:,.0f} -> {counts['life']:,.0f} Ir", flush=True)
    return {"jobs": jobs, "rows": found}


def over(row: dict[str, Any]) -> float:
    return float(row["counts"]["life"] / row["base"]["life"])


def targets(result: dict[str, Any]) -> list[Target]:
    return [
        at_most(f"life called by {row['what']}, Ir over the bench's calls", over(row), LIMIT, " ×")
        for row in result["rows"]
    ]


def markdown(result: dict[str, Any]) -> str:
    rows = [
        [row["what"]]
        + [cell for name in ("enqueue", "work", "life") for cell in (row["base"][name], row["counts"][name])]
        + [f"{over(row):.2f} ×"]
        for row in result["rows"]
    ]
    head = ["", "enqueue, bench", "enqueue", "work, bench", "work", "life, bench", "life", ""]
    note = (
        f"Ir in Redis per job (callgrind), {result['jobs']} jobs, one call at a time. Work: from the start "
        "of a worker until it has stopped, all it calls included; the bench fetches, and finishes fetching "
        "the next, as many at a time as that worker does."
    )
    return table(head, rows) + "\n\n" + note
