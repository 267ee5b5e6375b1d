"""Instructions in Redis per job, counted with callgrind: repeatable whatever else the machine does."""

from __future__ import annotations

from statistics import median
from typing import Any

from kit.bullmq import BullMQ, install
from kit.callgrind import CountedServer
from kit.contenders import JQ, Contender, Floor
from kit.counting import operations
from kit.options import Options
from kit.report import Target, at_most, table

BATCHES = (1, 100)
FACTS_BULLMQ = 491_000
"""BullMQ 6.2 in the same counting, from the project's facts; used when BullMQ is not counted here."""


def run(options: Options) -> dict[str, Any]:
    contenders: list[Contender] = [Floor(), JQ(form=options.form), JQ({"done_max": 0}, form=options.form)]
    jobs = options.scaled(1600, 800)
    rounds = options.scaled(3, 1, 1)
    seen: dict[str, dict[str, dict[str, list[float]]]] = {}
    for _ in range(rounds):
        for contender in contenders:
            # A server of its own each time: what an earlier contender left in Lua or malloc would be counted.
            for batch in BATCHES:
                with CountedServer() as server:
                    profiles = operations(server, contender, batch, jobs)
                cell = seen.setdefault(contender.name, {}).setdefault(str(batch), {})
                for name, profile in profiles.items():
                    cell.setdefault(name, []).append(profile.total / jobs)
    found = {
        name: {batch: life({op: median(values) for op, values in ops.items()}) for batch, ops in batches.items()}
        for name, batches in seen.items()
    }
    spread = max(
        (max(values) - min(values)) / median(values)
        for batches in seen.values()
        for ops in batches.values()
        for values in ops.values()
    )
    result: dict[str, Any] = {"jobs": jobs, "rounds": rounds, "spread": spread, "contenders": found}
    if options.peers and not (why := install()):
        result["bullmq"] = bullmq(jobs)
    elif options.peers:
        result["bullmq_skipped"] = why
    return result


def life(ops: dict[str, float]) -> dict[str, float]:
    ops["life"] = ops["enqueue"] + ops["pick"] + ops["finish"]
    if "finish_next" in ops:
        ops["life_next"] = ops["enqueue"] + ops["finish_next"]
    return ops


def bullmq(jobs: int) -> dict[str, Any]:
    """Adding singly and in bulk, and a worker's whole drain at concurrency 32, its start and end included."""
    with CountedServer() as server, BullMQ(server.path) as driver:
        found: dict[str, Any] = {"version": driver.version}
        driver.step("add", 32)
        driver.step("drain", 32)
        for step in ("add", "drain", "addBulk"):
            server.zero()
            driver.step(step, jobs)
            found[step] = server.count().total / jobs
    found["life"] = found["add"] + found["drain"]
    found["life_bulk"] = found["addBulk"] + found["drain"]
    return found


def targets(result: dict[str, Any]) -> list[Target]:
    found: list[Target] = []
    floor = result["contenders"]["floor"]
    peer = result.get("bullmq", {}).get("life", FACTS_BULLMQ)
    for name, jq in result["contenders"].items():
        if not name.startswith("jq"):
            continue
        singly, batch = jq["1"], jq["100"]["life"]
        kilo = [
            ("three calls", singly["life"], 290, floor["1"]["life"]),
            ("finish fetching the next", singly["life_next"], 230, floor["1"]["life"]),
            ("batches of 100", batch, 95, floor["100"]["life"]),
        ]
        for what, value, limit, least in kilo:
            target = at_most(f"{name}: life, {what}", value / 1000, limit, "k Ir", 1)
            target.value += f" ({value / least:.2f} × floor)"
            found.append(target)
        # The facts' BullMQ, whatever BullMQ's newest version costs, is what the target was set against.
        for what, value, limit in [
            ("finish fetching the next", singly["life_next"], 0.5),
            ("batches", batch, 0.2),
        ]:
            target = at_most(f"{name}: {what}, over BullMQ's 491k Ir", value / FACTS_BULLMQ, limit, " ×", 3)
            target.value += f" ({value / peer:.3f} × BullMQ here)" if peer != FACTS_BULLMQ else ""
            found.append(target)
    return found


def markdown(result: dict[str, Any]) -> str:
    rows = []
    for name, batches in result["contenders"].items():
        for batch, ops in batches.items():
            columns = ("enqueue", "pick", "finish", "finish_next", "life", "life_next")
            rows.append([name, "singly" if batch == "1" else f"batches of {batch}", *[ops.get(c) for c in columns]])
    if peer := result.get("bullmq"):
        name = f"BullMQ {peer['version']}"
        rows.append([name, "add, worker c=32", peer["add"], None, None, peer["drain"], None, peer["life"]])
        rows.append(
            [
                name,
                "addBulk, worker c=32",
                peer["addBulk"],
                None,
                None,
                peer["drain"],
                None,
                peer["life_bulk"],
            ]
        )
    head = ["", "", "enqueue", "pick", "finish", "finish + next", "life, three calls", "life, finish + next"]
    counted = f"{result['jobs']} jobs, {result['rounds']} rounds, largest spread {result['spread']:.1%}"
    note = f"Ir per job (callgrind); {counted}."
    return table(head, rows) + "\n\n" + note
