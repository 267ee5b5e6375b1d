"""What constraints cost: jobs held, many keys, many constraints, changes over a million jobs, fair queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import Any

import msgpack
from kit.changing import carried_out
from kit.constrained import (
    FREE,
    OPEN,
    Constrained,
    Setup,
    by_customer,
    fair,
    held,
    one,
    other_names,
    two_conditions,
    with_waiting,
    without,
)
from kit.contenders import NAME
from kit.counting import WINDOW, expect, picked_all
from kit.options import Options
from kit.report import Target, at_least, at_most, table
from kit.rounds import BATCHES, PIPELINED, SINGLY, Mode, round_next
from kit.server import Server
from kit.sharing import Load, Simulation
from kit.timing import measured
from kit.wire import Wire

Round = Callable[[Wire, Constrained, Mode, int], float]
"""One round of one side: Redis CPU µs per job."""
Found = dict[str, Any]
"""what, mode, base_us, us, ratio: the median of the ratios within rounds"""


def cost(wire: Wire, jobs: int, mode: Mode, commands: list[bytes]) -> tuple[list[Any], float]:
    replies, found = measured(wire, jobs, lambda: mode.send(wire, commands))
    return replies, found["cpu_us"]


def enqueues(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    return cost(wire, jobs, mode, jq.enqueue(jobs, mode.batch))[1]


def takes(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> tuple[float, float]:
    """Pick as many jobs, and finish them."""
    commands = jq.pick(jobs, mode.batch)
    tokens, found = measured(
        wire, jobs, lambda: picked_all(jq, lambda some: mode.send(wire, some), commands, jobs, mode.batch)
    )
    replies, finishing = cost(wire, jobs, mode, jq.finish(tokens, mode.batch))
    expect(jq.finished(replies), jobs, f"{jq.name} finish")
    return found["cpu_us"], finishing


def picks(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    wire.pipelined(jq.enqueue(jobs, 100))
    return takes(wire, jq, mode, jobs)[0]


def picks_and_finishes(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    wire.pipelined(jq.enqueue(jobs, 100))
    return sum(takes(wire, jq, mode, jobs))


def in_windows(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    """The same with few jobs running at a time, so that a limit of few is met now and then."""
    wire.pipelined(jq.enqueue(jobs, 100))
    window = 10
    return sum(sum(takes(wire, jq, mode, window)) for _ in range(jobs // window)) * window / jobs


def lives(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    """Enqueue, pick, finish."""
    return enqueues(wire, jq, mode, jobs) + sum(takes(wire, jq, mode, jobs))


def lives_next(wire: Wire, jq: Constrained, mode: Mode, jobs: int) -> float:
    """Enqueue, and finish fetching the next."""
    enqueuing = enqueues(wire, jq, mode, jobs)
    ending: float = round_next(wire, jq, mode, jobs)["finish_next"]["cpu_us"]
    wire.pipelined(jq.finish(jq.picked(wire.pipelined(jq.pick(jobs, 100)), 100), 100))
    return enqueuing + ending


def compare(
    what: str,
    sides: tuple[Setup, Setup],
    kinds: dict[str, Round],
    modes: Iterable[Mode],
    jobs: int,
    options: Options,
) -> list[Found]:
    """The second setup over the first, taking turns round by round, for each kind of round in each mode."""
    cells = [(kind, mode) for kind in kinds for mode in modes]
    seen: dict[tuple[str, Mode], list[tuple[float, float]]] = {cell: [] for cell in cells}
    with ExitStack() as stack:
        both = [(stack.enter_context(Server()).wire(), Constrained(setup, form=options.form)) for setup in sides]
        for wire, jq in both:
            jq.prepare(wire)
            for kind, mode in cells:
                kinds[kind](wire, jq, mode, 200)
        for turn in range(options.rounds):
            for kind, mode in cells:
                # Who goes first changes: what else the machine does would favour one.
                costs = [kinds[kind](wire, jq, mode, jobs) for wire, jq in both[:: 1 - 2 * (turn % 2)]]
                base_us, us = costs[:: 1 - 2 * (turn % 2)]
                seen[kind, mode].append((base_us, us))
    found = []
    for (kind, mode), pairs in seen.items():
        ratio = median(us / base_us for base_us, us in pairs)
        base_us, us = (median(side) for side in zip(*pairs, strict=True))
        row = {"what": ", ".join(filter(None, [what, kind])), "mode": mode.name}
        found.append(row | {"base_us": base_us, "us": us, "ratio": ratio})
        print(f"{row['what']}, {mode.name}: {base_us:.1f} -> {us:.1f} µs, {ratio:.2f} ×", flush=True)
    return found


def held_jobs(options: Options) -> list[Found]:
    most = options.scaled(1_000_000, 100_000)
    jobs = options.scaled(2_000, 500)

    def free(packed: bytes) -> Round:
        def round_of(wire: Wire, jq: Constrained, mode: Mode, count: int) -> float:
            jq.setup = replace(jq.setup, argument=lambda number: packed)
            return picks(wire, jq, mode, count)

        return round_of

    kinds = {f"free jobs {how}": free(packed) for how, packed in FREE.items()}
    sides = (held(0), held(most))
    return compare(f"pick, {most:,} held", sides, kinds, (PIPELINED, BATCHES), jobs, options)


def keys(options: Options) -> list[Found]:
    waiting = options.scaled(100_000, 20_000)
    few, many = 10, options.scaled(10_000, 2_000)
    jobs = options.scaled(2_000, 500)
    found = []
    for concurrency, how, round_of, modes in (
        (OPEN, "all open", picks_and_finishes, (PIPELINED, BATCHES)),
        (2, "2 of a key at once", in_windows, (PIPELINED,)),
    ):
        few_keys, many_keys = (with_waiting(by_customer(count, concurrency), waiting) for count in (few, many))
        what = f"pick and finish, {many:,} keys over {few}"
        found += compare(what, (few_keys, many_keys), {how: round_of}, modes, jobs, options)
    return found


def names(options: Options) -> list[Found]:
    setup = other_names(1_000)
    modes, jobs = (SINGLY, PIPELINED, BATCHES), options.scaled(5_000, 1_000)
    what = "enqueue, 1,000 constraints on other names"
    return compare(what, (without(setup), setup), {"": enqueues}, modes, jobs, options)


def conditions(options: Options) -> list[Found]:
    setup = two_conditions()
    modes, jobs = (SINGLY, PIPELINED, BATCHES), options.scaled(5_000, 1_000)
    what = "enqueue, one constraint with two conditions"
    return compare(what, (without(setup), setup), {"": enqueues}, modes, jobs, options)


def life(options: Options) -> list[Found]:
    modes, jobs = (SINGLY, PIPELINED, BATCHES), options.scaled(2_000, 500)
    is_open, full = one(1_000_000), one(WINDOW)
    kinds = {"three calls": lives, "finish fetching the next": lives_next}
    busy: dict[str, Round] = {"finish fetching the next, as many run as may": lives_next}
    return [
        *compare("life", (without(is_open), is_open), kinds, modes, jobs, options),
        *compare("life", (without(full), full), busy, (PIPELINED,), jobs, options),
    ]


def adding(options: Options) -> list[Found]:
    """Changes over a million jobs that wait, one after the other; 1,000 jobs run meanwhile."""
    waiting = options.scaled(1_000_000, 100_000)
    setup = without(by_customer(1_000))
    found: list[Found] = []
    with Server() as server:
        wire, jq = server.wire(), Constrained(setup, form=options.form)
        jq.prepare(wire)
        # Nobody renews their leases: they have to last.
        wire.pipelined(jq.jobs(map(setup.argument, range(1_000)), 1000, timeout=100_000))
        wire.pipelined([jq.command("pick", msgpack.packb({"worker": "busy", "queues": NAME, "count": 1000}))])
        for _ in range(0, waiting, 100_000):
            wire.pipelined(jq.enqueue(min(waiting, 100_000), 1000), depth=4)
        match = {"name": NAME, "argument.size": {"lt": 1_000_000}}
        few = {"id": "few", "by": "argument.customer", "concurrency": 3}
        changes = [
            ("adding one with 1,000 keys", jq.constrain(few, match)),
            ("widening it", jq.constrain(few | {"concurrency": 5}, match)),
            ("making it one key", jq.constrain({"id": "few", "concurrency": 1_100}, match)),
            ("removing it", jq.command("unconstrain", msgpack.packb({"id": "few"}))),
        ]
        limit_s = 60 if options.targets else float("inf")
        for what, change in changes[:1] if options.targets else changes:
            one_change = carried_out(wire, jq, what, change, limit_s)
            found.append(one_change)
            print(change_line(one_change), flush=True)
    return found


def change_line(change: Found) -> str:
    each = sorted(change["cpu_ms"].items(), key=lambda kind: -kind[1])
    return (
        f"{change['what']}: longest calls {', '.join(f'{kind} {ms:.2f}' for kind, ms in each)} ms of CPU, "
        f"{max(change['wall_ms'].values()):.2f} ms by the clock; "
        f"{change['calls']:,} calls, half within {change['p50_ms']:.2f} ms, "
        f"999 of 1,000 within {change['p999_ms']:.2f} ms; "
        f"{change['total_cpu_ms']:,.0f} ms in all, {change['empty_picks']} picks without a job"
    )


def sharing(options: Options) -> list[Found]:
    """Nine light tenants, alone and beside a flood, in a fair queue and in a plain one."""
    found = []
    flood = options.scaled(10_000, 1_000)
    rounds = options.scaled(3, 1, 1)
    kinds = ((True, "100 jobs each at once"), (False, "single jobs"))
    for is_burst, how in kinds[:1] if options.targets else kinds:
        for setup in (fair(10), without(fair(10))):
            each: dict[str, list[dict[str, float]]] = {"alone": [], "flooded": []}
            with Server() as server:
                wire, jq = server.wire(), Constrained(setup, form=options.form)
                for seed in range(rounds):
                    for which, number in (("alone", 0), ("flooded", flood)):
                        jq.prepare(wire)
                        each[which].append(Simulation(wire, jq, Load(number, is_burst), seed).run())
            row = {
                "what": how,
                "queue": "fair" if setup.fair else "plain",
                **{
                    which: {name: median(one[name] for one in some) for name in some[0]} for which, some in each.items()
                },
            }
            row["ratio"] = median(
                flooded["wait"] / alone["wait"] for alone, flooded in zip(each["alone"], each["flooded"], strict=True)
            )
            found.append(row)
            print(sharing_line(row), flush=True)
    return found


def sharing_line(row: Found) -> str:
    alone, flooded = row["alone"], row["flooded"]
    return (
        f"{row['what']}, {row['queue']} queue: wait {alone['wait']:.2f} alone, "
        f"{flooded['wait']:.2f} beside a flood, {row['ratio']:.2f} ×; "
        f"flooded slots at work {flooded['worked']:.1%}; "
        f"picks that lost room {alone['lost'] + flooded['lost']:.0f}"
    )


ROWS: dict[str, tuple[str, float, Callable[[Options], list[Found]]]] = {
    "held": ("pick with 1M held, over none held", 1.3, held_jobs),
    "keys": ("pick and finish with 10,000 keys, over 10", 1.5, keys),
    "names": ("enqueue with 1,000 constraints on other names, over none", 1.1, names),
    "conditions": ("enqueue matched by two conditions, over none", 2.0, conditions),
    "life": ("life under one concurrency constraint, over none", 1.6, life),
    "adding": ("adding a constraint over 1M waiting: longest call, CPU", 10.0, adding),
    "sharing": ("fair queue: wait of light tenants beside a flood, over alone", 1.5, sharing),
}


def run(options: Options) -> dict[str, Any]:
    chosen = [name for name in ROWS if not options.rows or name in options.rows]
    return {"rounds": options.rounds, "rows": {name: ROWS[name][2](options) for name in chosen}}


def targets(result: dict[str, Any]) -> list[Target]:
    found = []
    for name, rows in result["rows"].items():
        what, limit, _ = ROWS[name]
        if name == "adding":
            found.append(adding_target(what, limit, rows[0]))
        elif name == "sharing":
            found += sharing_targets(what, limit, rows)
        else:
            for mode in dict.fromkeys(row["mode"] for row in rows):
                ratios = [row["ratio"] for row in rows if row["mode"] == mode]
                target = at_most(f"{what}, {mode}", max(ratios), limit, " ×")
                if len(ratios) > 1:
                    target.value += " (" + ", ".join(f"{ratio:.2f}" for ratio in ratios) + ")"
                found.append(target)
    return found


def adding_target(what: str, limit: float, row: Found) -> Target:
    target = at_most(what, max(row["cpu_ms"].values()), limit, " ms")
    target.value += f" ({max(row['wall_ms'].values()):.2f} ms by the clock)"
    return target


def sharing_targets(what: str, limit: float, rows: list[Found]) -> list[Target]:
    fair_row, plain_row = rows[0], rows[1]
    waits = at_most(what, fair_row["ratio"], limit, " ×")
    waits.value += f" (plain queue {plain_row['ratio']:.2f} ×)"
    worked = fair_row["flooded"]["worked"] / plain_row["flooded"]["worked"]
    return [waits, at_least("fair queue: throughput over a plain queue's, flooded", worked, 0.999, " ×", 3)]


def markdown(result: dict[str, Any]) -> str:
    parts = []
    others = ("adding", "sharing")
    if pairs := [row for name, rows in result["rows"].items() if name not in others for row in rows]:
        columns = ("what", "mode", "base_us", "us")
        cells = [[*(row[column] for column in columns), f"{row['ratio']:.2f} ×"] for row in pairs]
        parts.append(table(["", "", "without, µs", "with, µs", ""], cells))
        parts.append(f"Redis CPU µs per job; medians of {result['rounds']} rounds in turn.")
    for name, line in (("adding", change_line), ("sharing", sharing_line)):
        if rows := result["rows"].get(name):
            parts.append("\n".join("- " + line(row) for row in rows))
    return "\n\n".join(parts)
