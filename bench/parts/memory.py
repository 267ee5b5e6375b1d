"""Bytes that Redis holds for one waiting job, above its argument."""

from __future__ import annotations

import time
from typing import Any

from kit.bullmq import BullMQ, install
from kit.contenders import ARGUMENT, JQ, Contender, Floor
from kit.options import Options
from kit.report import Target, at_most, table
from kit.server import Server
from kit.wire import Wire


def settled(wire: Wire) -> int:
    """used_memory once tables have stopped growing or moving."""
    last, steady = wire.used_memory(), 0
    while steady < 5:
        time.sleep(0.1)
        now = wire.used_memory()
        steady = steady + 1 if abs(now - last) < 4096 else 0
        last = now
    return last


def run(options: Options) -> dict[str, Any]:
    jobs = options.scaled(200_000, 20_000)
    found: dict[str, float] = {}
    contenders: list[Contender] = [Floor(), JQ(form=options.form)]
    for contender in contenders:
        with Server() as server:
            wire = server.wire()
            contender.prepare(wire)
            wire.pipelined(contender.enqueue(100, 100))
            before = settled(wire)
            wire.pipelined(contender.enqueue(jobs, 100), depth=20)
            found[contender.name] = (settled(wire) - before) / jobs - len(ARGUMENT)
    result: dict[str, Any] = {"jobs": jobs, "bytes": found}
    if options.peers and not (why := install()):
        with Server() as server, BullMQ(server.path) as driver:
            wire = server.wire()
            driver.step("addBulk", 100)
            before = settled(wire)
            driver.step("addBulk", jobs)
            found[f"BullMQ {driver.version}"] = (settled(wire) - before) / jobs - len(ARGUMENT)
    elif options.peers:
        result["bullmq_skipped"] = why
    return result


def targets(result: dict[str, Any]) -> list[Target]:
    return [at_most("jq: bytes per waiting job above a 200-byte argument", result["bytes"]["jq"], 320, digits=0)]


def markdown(result: dict[str, Any]) -> str:
    note = f"Growth of used_memory over {result['jobs']:,} jobs with a 200-byte argument, less the argument."
    return table(["", "bytes per waiting job"], list(result["bytes"].items())) + "\n\n" + note
