"""The Python library on Redis, beside BullMQ: how soon a job starts, what an enqueue costs its client."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import Any

from kit.bullmq import BullMQ, install
from kit.options import Options
from kit.processes import Driver, library
from kit.report import Target, at_most, table
from kit.server import Server

LIBRARY, PLAIN, PEER = "JQ, in a coroutine", "JQ, plain code", "BullMQ"
ENQUEUE = {LIBRARY: "enqueue", PLAIN: "plain", PEER: "add"}
SPACED = {LIBRARY: "spaced", PLAIN: "spaced_plain", PEER: "spaced"}
"""The steps of the drivers."""
Sides = dict[str, tuple[Driver, Driver]]
"""who enqueues, who works"""
Found = dict[str, list[float]]


def sides(stack: ExitStack, peers: bool) -> Sides:
    redis = stack.enter_context(Server())
    asking, working = (stack.enter_context(library(f"unix://{redis.path}")) for _ in range(2))
    asking.step("load")
    found: Sides = {LIBRARY: (asking, working), PLAIN: (asking, working)}
    if peers:
        other = stack.enter_context(Server())
        asking, working = (stack.enter_context(BullMQ(other.path)) for _ in range(2))
        found[PEER] = asking, working
    return found


def starts(found: Sides, who: str, jobs: int) -> float:
    """The median of the milliseconds from before the enqueue until the function runs; all sleep between."""
    asking, working = found[who]
    asking.step(SPACED[who], jobs)
    return median(working.step("waits", jobs)["waits"])


def enqueues(found: Sides, who: str, jobs: int) -> float:
    """µs of the client's CPU time for one enqueue that is awaited."""
    return float(found[who][0].step(ENQUEUE[who], jobs)["cpu_us"]) / jobs


def run(options: Options) -> dict[str, Any]:
    why = install() if options.peers else "left out"
    few, many = options.scaled(100, 30), options.scaled(2_000, 300)
    cpu_us: Found = {}
    start_ms: Found = {}
    with ExitStack() as stack:
        found = sides(stack, not why)
        for who in found:
            enqueues(found, who, 5 * many)  # Node compiles what runs often: its first thousands are dear
        for turn in range(options.rounds):
            for who in list(found)[:: 1 - 2 * (turn % 2)]:
                cpu_us.setdefault(who, []).append(enqueues(found, who, many))
    with ExitStack() as stack:
        found = sides(stack, not why)
        for _, working in {id(side[1]): side for side in found.values()}.values():
            working.step("serve")
        for who in found:
            starts(found, who, 20)
        for turn in range(options.rounds):
            for who in list(found)[:: 1 - 2 * (turn % 2)]:
                start_ms.setdefault(who, []).append(starts(found, who, few))
    return {"rounds": options.rounds, "start_ms": start_ms, "cpu_us": cpu_us, "jobs": [few, many]}


def over_peer(rounds: Found, who: str) -> float:
    return median(own / other for own, other in zip(rounds[who], rounds[PEER], strict=True))


def targets(result: dict[str, Any]) -> list[Target]:
    if PEER not in result["cpu_us"]:
        return []
    start, cpu = (over_peer(result[what], LIBRARY) for what in ("start_ms", "cpu_us"))
    return [
        at_most("enqueue → function running, library, idle, p50, over BullMQ's", start, 0.8, " ×"),
        at_most("client CPU of an awaited enqueue, library, over BullMQ's", cpu, 1.0, " ×"),
    ]


def markdown(result: dict[str, Any]) -> str:
    start_ms, cpu_us = result["start_ms"], result["cpu_us"]
    rows = [
        [who, median(start_ms[who]), median(cpu_us[who])]
        + ([over_peer(start_ms, who), over_peer(cpu_us, who)] if PEER in cpu_us else [])
        for who in start_ms
    ]
    head = ["", "enqueue → running, p50 ms", "client CPU µs per enqueue"]
    head += [f"{what}, over BullMQ's" for what in ("start", "CPU")] if PEER in cpu_us else []
    few, many = result["jobs"]
    note = (
        f"Medians of {result['rounds']} rounds in turn. Starts: {few} jobs a round, 10 to 30 ms apart, "
        f"enqueued in one process and run in another. CPU: {many:,} jobs a round, each awaited alone."
    )
    return table(head, rows) + "\n\n" + note
