"""Instructions by what jobs use, beside the same without: repeatable whatever else the machine does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.callgrind import CountedServer
from kit.constrained import (
    FREE,
    SHAPES,
    Constrained,
    Setup,
    by_customer,
    held,
    one,
    other_names,
    two_conditions,
    with_waiting,
    without,
)
from kit.counting import TRIES, TooSlow, life, life_next
from kit.options import Options
from kit.report import Target, at_most, table

BATCHES = (1, 100)
WAITING = 10_000
"""A server under callgrind is some fifty times slower: a million jobs would take an hour to bring in."""
WARM_UP = 4
"""calls of each kind: the first ones make what a queue needs"""
Counts = dict[str, float]
"""Ir per job by operation"""


@dataclass(frozen=True)
class Pair:
    """The second setup over the first, for the sum of these operations."""

    what: str
    base: Setup
    setup: Setup
    operations: tuple[str, ...]
    limit: float
    batches: tuple[int, ...] = BATCHES

    @property
    def is_life(self) -> bool:
        return self.operations in LIVES.values()


LIVES = {"three calls": ("enqueue", "pick", "finish"), "finish fetching the next": ("enqueue", "finish_next")}
SHAPE_LIMITS = {"specs": 1.25, "tag": 1.3, "list": 1.3, "wait": 1.1}


def pairs() -> list[Pair]:
    bare, constrained = without(one()), one()
    shapes = [(SHAPES[name](), limit, (1,)) for name, limit in SHAPE_LIMITS.items()]
    found = [
        Pair(f"life, {how}, {setup.name}", bare, setup, operations, limit, batches)
        for setup, limit, batches in [*shapes, (constrained, 1.6, BATCHES)]
        for how, operations in LIVES.items()
    ]
    plain = without(two_conditions())
    few, many = (with_waiting(by_customer(keys), WAITING) for keys in (10, WAITING))
    found += [
        Pair("enqueue, 1,000 constraints on other names", plain, other_names(1_000), ("enqueue",), 1.1),
        Pair("enqueue, one constraint with two conditions", plain, two_conditions(), ("enqueue",), 2.0),
        Pair(f"pick and finish, {WAITING:,} keys over 10", few, many, ("pick", "finish"), 1.5),
    ]
    for how, free in FREE.items():
        what = f"pick, {WAITING:,} held, free jobs {how}"
        found.append(Pair(what, held(0, free), held(WAITING, free), ("pick",), 1.3))
    return found


def count(setup: Setup, has_next: bool, batch: int, jobs: int, form: str) -> Counts:
    """On a server of its own: what others left in Lua or malloc would be counted."""
    for _ in range(TRIES):
        with CountedServer() as server:
            wire, jq = server.wire(), Constrained(setup, form=form)
            jq.prepare(wire)
            try:
                life(server, wire, jq, batch, WARM_UP * batch)
                profiles = life(server, wire, jq, batch, jobs)
                if has_next:
                    profiles |= life_next(server, wire, jq, batch, jobs)
            except TooSlow:
                continue
            return {name: profile.total / jobs for name, profile in profiles.items()}
    raise TooSlow(f"{setup.name}: the machine is too busy, try again later")


def run(options: Options) -> dict[str, Any]:
    jobs = options.scaled(400, 200, 200)
    rows = []
    seen: dict[tuple[int, int], Counts] = {}

    def counts_of(setup: Setup, pair: Pair, batch: int) -> Counts:
        key = id(setup), batch
        if key not in seen:
            seen[key] = count(setup, pair.is_life, batch, jobs, options.form)
        return seen[key]

    compared = pairs()  # kept, since setups are known by their ids
    for pair in compared:
        for batch in pair.batches:
            base, counts = (counts_of(setup, pair, batch) for setup in (pair.base, pair.setup))
            base_ir, ir = (sum(side[name] for name in pair.operations) for side in (base, counts))
            mode = "singly" if batch == 1 else f"batches of {batch}"
            row = {"what": pair.what, "mode": mode, "limit": pair.limit, "base_ir": base_ir, "ir": ir}
            rows.append(row | {"base": base, "counts": counts})
            print(f"{pair.what}, {mode}: {base_ir:,.0f} -> {ir:,.0f} Ir, {ir / base_ir:.2f} ×", flush=True)
    return {"jobs": jobs, "rows": rows}


def targets(result: dict[str, Any]) -> list[Target]:
    return [
        at_most(f"{row['what']}, {row['mode']}, Ir", row["ir"] / row["base_ir"], row["limit"], " ×")
        for row in result["rows"]
    ]


def markdown(result: dict[str, Any]) -> str:
    cells = [
        [row["what"], row["mode"], row["base_ir"], row["ir"], f"{row['ir'] / row['base_ir']:.2f} ×"]
        for row in result["rows"]
    ]
    note = f"Ir per job (callgrind); {result['jobs']} jobs."
    return table(["", "", "without", "with", ""], cells) + "\n\n" + note
