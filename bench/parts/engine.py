"""Redis CPU per job: enqueue, pick, finish and the whole life, beside the floor and BullMQ in one run."""

from __future__ import annotations

from contextlib import ExitStack
from operator import truediv
from statistics import median
from typing import Any

from kit.bullmq import BullMQ, install
from kit.contenders import JQ, Contender, Floor
from kit.options import Options
from kit.report import Target, at_most, table
from kit.rounds import BATCHES, MODES, round_of
from kit.server import Server
from kit.timing import measured, medians, total
from kit.wire import Wire

HOW = {"life": "three calls", "life_next": "finish + next"}
LIMITS = {
    ("floor", "singly", "life"): 1.7,
    ("BullMQ", "pipelined", "life_next"): 0.5,
    ("BullMQ", "batches of 100", "life_next"): 0.2,
}


def run(options: Options) -> dict[str, Any]:
    contenders: list[Contender] = [Floor(), JQ(form=options.form), JQ({"done_max": 0}, form=options.form)]
    jobs = {mode.name: options.scaled(20_000 if mode is BATCHES else 5_000, 1_000) for mode in MODES}
    rounds: dict[str, list[dict[str, Any]]] = {}
    result: dict[str, Any] = {"jobs": jobs, "rounds": options.rounds}
    why = install() if options.peers else "left out"
    with ExitStack() as stack:
        wires = [stack.enter_context(Server()).wire() for _ in contenders]
        for wire, contender in zip(wires, contenders, strict=True):
            contender.prepare(wire)
            for mode in MODES:
                round_of(wire, contender, mode, 300)
        if why:
            result["bullmq_skipped"] = why
        else:
            server = stack.enter_context(Server())
            driver = stack.enter_context(BullMQ(server.path))
            result["bullmq"] = driver.version
            bullmq_round(server.wire(), driver, 300)
        for _ in range(options.rounds):
            for wire, contender in zip(wires, contenders, strict=True):
                found = {mode.name: round_of(wire, contender, mode, jobs[mode.name]) for mode in MODES}
                rounds.setdefault(contender.name, []).append(found)
            if not why:
                found = bullmq_round(server.wire(), driver, options.scaled(5_000, 1_000))
                rounds.setdefault("BullMQ", []).append(found)
    result["contenders"] = {name: medians(found) for name, found in rounds.items()}
    result["ratios"] = []
    for name in filter(lambda name: name.startswith("jq"), rounds):
        for other, mode, life in (key for key in LIMITS if key[0] in rounds):
            own, base = (cpu_us(rounds[who], mode, life) for who in (name, other))
            result["ratios"].append([name, other, mode, life, median(map(truediv, own, base))])
    return result


def cpu_us(rounds: list[dict[str, Any]], mode: str, life: str) -> list[float]:
    return [found[mode][life]["cpu_us"] for found in rounds]


def bullmq_round(wire: Wire, driver: BullMQ, jobs: int) -> dict[str, Any]:
    """Add and drain, by a worker at concurrency 32 that fetches the next job with each finish."""
    found: dict[str, Any] = {}
    for mode, step in (("singly", "add"), ("pipelined", "addPipelined"), ("batches of 100", "addBulk")):
        _, added = measured(wire, jobs, lambda step=step: driver.step(step, jobs))
        _, drained = measured(wire, jobs, lambda: driver.step("drain", jobs))
        found[mode] = {"enqueue": added, "finish_next": drained, "life_next": total([added, drained])}
    wire.close()
    return found


def targets(result: dict[str, Any]) -> list[Target]:
    return [
        at_most(
            f"{name}: life, {HOW[life]}, {mode}, Redis CPU over {other}'s",
            ratio,
            LIMITS[other, mode, life],
            " ×",
        )
        for name, other, mode, life, ratio in result["ratios"]
    ]


COLUMNS = ("enqueue", "pick", "finish", "finish_next", "life", "life_next")


def markdown(result: dict[str, Any]) -> str:
    head = ["", "", "enqueue", "pick", "finish", "finish + next", "life, three calls", "life, finish + next"]
    parts = []
    for unit, text in (
        ("cpu_us", "Redis CPU µs per job (user and system, from INFO)"),
        ("script_us", "Of it inside the scripts (µs per job, from commandstats)"),
        ("per_s", "Jobs per second over one connection (the client included)"),
    ):
        rows = []
        for name, modes in result["contenders"].items():
            for mode, costs in modes.items():
                if name == "BullMQ" and unit == "script_us":
                    continue
                label = f"BullMQ {result['bullmq']}" if name == "BullMQ" else name
                rows.append([label, mode, *[costs[c][unit] if c in costs else None for c in COLUMNS]])
        parts.append(f"**{text}**\n\n{table(head, rows)}")
    note = (
        f"Medians of {result['rounds']} rounds in turn; jobs per round: {result['jobs']}. "
        "BullMQ's finish + next is a worker's drain at concurrency 32; its whole life is add + drain, "
        "whichever way the jobs were added."
    )
    return "\n\n".join([*parts, note])
