"""What a job costs when very many wait, and when they wait in very many queues."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import Any

from kit.contenders import JQ, Contender, Floor
from kit.options import Options
from kit.report import Target, at_most, table
from kit.rounds import BATCHES, PIPELINED, round_of
from kit.server import Server
from kit.timing import medians
from kit.wire import Wire

MODES = (PIPELINED, BATCHES)
QUEUES = 10_000


def fill(wire: Wire, contender: Contender, jobs: int) -> None:
    contender.prepare(wire)
    batch = min(jobs, 100)
    for _ in range(max(1, jobs // 10_000)):
        wire.pipelined(contender.enqueue(min(jobs, 10_000), batch), depth=20)


def run(options: Options) -> dict[str, Any]:
    sizes = [1_000, 10_000] if options.quick else [1_000, 1_000_000]
    if not (options.quick or options.targets):
        sizes.insert(1, 100_000)
    many = options.scaled(100_000, 20_000)
    cells: list[tuple[str, str, Contender, int]] = [
        (contender.name, f"{size:,} waiting", contender, size)
        for size in sizes
        for contender in (Floor(), JQ(form=options.form))
    ]
    if not options.targets:
        all_queues = JQ(queues="*", spread=QUEUES, form=options.form)
        cells.append(("jq", f"{many:,} in {QUEUES:,} queues, picked with *", all_queues, many))
    jobs = options.scaled(4_000, 1_000)
    rounds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with ExitStack() as stack:
        wires = []
        for _, _, contender, size in cells:
            wire = stack.enter_context(Server()).wire()
            fill(wire, contender, size)
            round_of(wire, contender, PIPELINED, 300)
            wires.append(wire)
        for _ in range(options.rounds):
            for wire, (name, what, contender, _) in zip(wires, cells, strict=True):
                found = {mode.name: round_of(wire, contender, mode, jobs) for mode in MODES}
                rounds.setdefault((name, what), []).append(found)
    rows = [
        {
            "contender": name,
            "what": what,
            "modes": medians(found),
            "lives": {mode.name: [one[mode.name]["life"]["cpu_us"] for one in found] for mode in MODES},
        }
        for (name, what), found in rounds.items()
    ]
    return {"jobs": jobs, "rounds": options.rounds, "rows": rows}


def targets(result: dict[str, Any]) -> list[Target]:
    def of(contender: str) -> list[dict[str, Any]]:
        """Its rows, fewest waiting first."""
        return [row for row in result["rows"] if row["contender"] == contender and "queues" not in row["what"]]

    def growth(contender: str, mode: str) -> float:
        """Most over fewest, within each round: what else the machine does then touches both."""
        rows = of(contender)
        pairs = zip(rows[-1]["lives"][mode], rows[0]["lives"][mode], strict=True)
        return median(most / fewest for most, fewest in pairs)

    found = []
    for mode in MODES:
        jq, floor = growth("jq", mode.name), growth("floor", mode.name)
        most = of("jq")[-1]["what"]
        target = at_most(f"jq: {most} over 1,000, {mode.name}", jq, max(1.5, floor), " ×")
        target.value += f" (floor {floor:.2f} ×)"
        found.append(target)
    return found


def markdown(result: dict[str, Any]) -> str:
    columns = ("enqueue", "pick", "finish", "finish_next", "life", "life_next")
    rows = [
        [row["what"], row["contender"], mode, *[costs[c]["cpu_us"] if c in costs else None for c in columns]]
        for row in result["rows"]
        for mode, costs in row["modes"].items()
    ]
    head = [
        "",
        "",
        "",
        "enqueue",
        "pick",
        "finish",
        "finish + next",
        "life, three calls",
        "life, finish + next",
    ]
    note = f"Redis CPU µs per job; medians of {result['rounds']} rounds of {result['jobs']:,} jobs in turn."
    return table(head, rows) + "\n\n" + note
