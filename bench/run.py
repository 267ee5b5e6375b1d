"""The bench: what a job costs Redis, beside the floor and BullMQ, and what HTTP and waiting cost.

    bench/run.py                         everything but the counting of instructions
    bench/run.py --instructions          the counting alone (callgrind)
    bench/run.py --targets               of all parts, the counting too, only what a target is about
    bench/run.py --form scripts          operations called by EVALSHA, results beside those of functions
    bench/run.py --parts engine,http     some parts
    bench/run.py --parts constraints --rows life,keys   some rows of constraints
    bench/run.py --quick                 small numbers, results are not kept

Every part starts Redis servers of its own and stops them. Results go to bench/results.json, a part at a
time, and bench/results.md is written from that.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.contenders import engine_digest
from kit.options import Options
from kit.report import machine, target_table
from kit.server import end_on_termination

HERE = Path(__file__).resolve().parent
PARTS = {
    "engine": "Redis CPU per job",
    "scale": "Cost with many jobs and many queues",
    "memory": "Memory",
    "latency": "From enqueue to start, on an idle system",
    "library": "The Python library, beside BullMQ",
    "http": "HTTP",
    "workers": "One worker process, beside other job queues",
    "constraints": "Constraints and fair queues",
    "bounds": "The longest calls",
    "instructions": "Instructions per job",
    "counted": "Instructions by what jobs use",
    "callers": "Instructions as our own workers call",
}

FORMS = ("functions", "scripts")
COUNTING = ("instructions", "counted", "callers")
"""Parts that run under callgrind, when they are asked for."""


def used_cpu_s() -> float:
    """Here, and in all programs that have ended: tells how long a run takes where nothing else runs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_part(name: str, options: Options) -> dict[str, Any]:
    module = importlib.import_module(f"parts.{name}")
    started, cpu_s = time.monotonic(), used_cpu_s()
    print(f"\n## {PARTS[name]}", flush=True)
    data = module.run(options)
    targets = [target.as_dict() for target in module.targets(data)]
    print(module.markdown(data))
    if targets:
        print("\n" + target_table(targets), flush=True)
    seconds = round(time.monotonic() - started)
    print(f"\n{name} took {seconds} s, and {used_cpu_s() - cpu_s:.0f} s of CPU time", flush=True)
    return {
        "command": " ".join(["bench/run.py", *sys.argv[1:]]),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds,
        "engine": engine_digest(),
        "machine": machine(),
        "data": data,
        "targets": targets,
    }


def keep(name: str, form: str, found: dict[str, Any]) -> None:
    """Replace a part's results. Read again now: another run may have written other parts meanwhile."""
    path = HERE / "results.json"
    key = name if form == FORMS[0] else f"{name}, {form}"
    write((json.loads(path.read_text()) if path.exists() else {}) | {key: found})


def write(results: dict[str, Any]) -> None:
    keys = {f"{name}{more}": name for more in ("", f", {FORMS[1]}") for name in PARTS}
    ordered = {key: results[key] for key in keys if key in results}
    (HERE / "results.json").write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    text = [
        "# Bench results",
        "",
        "Written by `bench/run.py`; what each figure means is in [README.md](README.md).",
    ]
    text += ["", "## Targets", ""]
    text.append(target_table([target for part in ordered.values() for target in part["targets"]]))
    for key, part in ordered.items():
        facts, name = part["machine"], keys[key]
        module = importlib.import_module(f"parts.{name}")
        text += ["", f"## {PARTS[name]}{key.removeprefix(name)}", "", module.markdown(part["data"]), ""]
        made = f"`{part['command']}`, {part['when']}, {part['seconds']} s, engine {part['engine']}"
        where = f"{facts['cores']} cores with load {facts['load']}, Redis {facts['redis']}"
        text.append(f"{made}; {where}, Python {facts['python']}, Node {facts['node']}.")
    (HERE / "results.md").write_text("\n".join(text) + "\n")


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="", help="comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--instructions", action="store_true", help="count instructions with callgrind")
    parser.add_argument("--targets", action="store_true", help="only what targets are about, of all parts")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0], help="how operations are called")
    parser.add_argument("--quick", action="store_true", help="small numbers; results are not kept")
    parser.add_argument(
        "--rounds", type=int, default=0, help="contenders take turns so often, medians count; 5, of targets 3"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave BullMQ out")
    parser.add_argument("--rows", default="", help="of constraints, these rows alone; results are not kept")
    parser.add_argument("--no-write", action="store_true", help="do not touch results.json and results.md")
    chosen = parser.parse_args(argv)
    names = [name for name in chosen.parts.split(",") if name]
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if chosen.instructions:
        names += [name for name in COUNTING if name not in names]
    chosen.names = names or [name for name in PARTS if chosen.targets or name not in COUNTING]
    return chosen


def main() -> int:
    chosen = arguments()
    end_on_termination()
    os.chdir(HERE)
    options = Options(
        quick=chosen.quick,
        rounds=chosen.rounds or (2 if chosen.quick else 3 if chosen.targets else 5),
        peers=not chosen.no_peers,
        rows=[row for row in chosen.rows.split(",") if row],
        form=chosen.form,
        targets=chosen.targets,
    )
    os.environ["JQ_FORM"] = options.form  # of the programs that run beside
    failed = []
    targets: list[dict[str, Any]] = []
    for name in chosen.names:
        try:
            found = run_part(name, options)
        except Exception as error:
            if len(chosen.names) == 1:
                raise
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
        else:
            targets += found["targets"]
            if not (chosen.quick or chosen.no_write or chosen.rows):
                keep(name, options.form, found)
    if len(chosen.names) > 1:
        print(f"\n## All targets\n\n{target_table(targets)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
