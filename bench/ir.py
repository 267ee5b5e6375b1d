"""Where the instructions of one operation go, by callgrind.

bench/ir.py --op pick                       singly
bench/ir.py --op finish --batch 100
bench/ir.py --op enqueue --floor
bench/ir.py --op pick --what "one limit"    a kind of job (parts/instructions.py)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from kit.breakdown import Breakdown, learn_names, split
from kit.callgrind import CountedServer, Profile
from kit.engine import Floor
from kit.life import WINDOW, Life
from kit.server import end_on_termination
from parts.instructions import KINDS

OPERATIONS = ("enqueue", "pick", "finish", "finish_next")


def profile(server: CountedServer, life: Life, operation: str, jobs: int) -> Profile:
    """Of one operation for so many jobs."""
    life.engine.prepare(life.wire)
    if operation == "finish_next":
        held = life.batch if life.batch > 1 else WINDOW
        life.enqueue(jobs + held)
        tokens = life.pick(held)
        server.zero()
        life.next(tokens, jobs)
        return server.count()
    server.zero()
    life.enqueue(jobs)
    if operation != "enqueue":
        server.zero()
        tokens = life.pick(jobs)
        if operation != "pick":
            server.zero()
            life.finish(tokens)
    return server.count()


def show(name: str, breakdown: Breakdown, jobs: int) -> None:
    def line(text: str, cost: float, calls: float | None = None) -> None:
        per_call = f"{calls:8.2f} × {cost / calls:9,.0f}" if calls else " " * 20
        print(f"  {text:44} {per_call} {cost:10,.0f} {100 * cost / breakdown.total:5.1f} %")

    print(f"\n{name}: {breakdown.total:,.0f} Ir per job ({jobs} jobs)")
    print("                                                  calls × Ir each       Ir/job")
    line("script (inside luaCallFunction's lua_pcall)", breakdown.script)
    for command, calls, cost in breakdown.commands:
        line(f"  {command}", cost, calls)
    line("  redis.call around the commands", breakdown.call_overhead)
    for function, calls, cost in breakdown.functions:
        if cost >= 0.001 * breakdown.total:
            line(f"  {function}", cost, calls)
    line("  Lua itself (VM, tables, strings, collector)", breakdown.lua_itself)
    for what, calls, cost in breakdown.inside:
        line(f"    {what}", cost, calls)
    line("    (the collector, wherever it ran)", breakdown.collector)
    line("outside (network, parsing, arguments, reply)", breakdown.total - breakdown.script)
    for function, calls, cost in breakdown.outside:
        if cost >= 0.005 * breakdown.total:
            line(f"  {function}", cost, calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", choices=OPERATIONS, required=True)
    parser.add_argument("--what", choices=KINDS, default="JQ")
    parser.add_argument("--floor", action="store_true", help="instead of JQ")
    parser.add_argument("--scripts", action="store_true", help="EVALSHA, not FCALL")
    parser.add_argument("--batch", type=int, default=1, help="jobs in a call")
    parser.add_argument("--jobs", type=int, default=1600)
    options = parser.parse_args()
    end_on_termination()
    engine = Floor() if options.floor else KINDS[options.what]("scripts" if options.scripts else "functions")
    with CountedServer() as server:
        found = profile(server, Life(server.wire(), engine, options.batch), options.op, options.jobs)
        show(options.op, split(found, learn_names(server), options.jobs), options.jobs)


if __name__ == "__main__":
    main()
