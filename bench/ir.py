"""Where the instructions of one operation go.

bench/ir.py --op pick                       JQ, singly, default settings
bench/ir.py --op finish --batch 100 --set done_max=0
bench/ir.py --op enqueue --contender floor
bench/ir.py --op pick --constraint concurrency    under a constraint
bench/ir.py --op life                       totals only, all operations
bench/ir.py --op pick --steps               how much by each top-level statement of the script
bench/ir.py --price "local t = {a = 1}"     what a piece of Lua costs
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from kit.breakdown import Breakdown, learn_names, split
from kit.callgrind import CountedServer, Profile
from kit.constrained import SETUPS, Constrained
from kit.contenders import JQ, Contender, Floor
from kit.counting import operations
from kit.server import end_on_termination
from kit.steps import Step, price, steps


def show(name: str, breakdown: Breakdown, jobs: int) -> None:
    def line(text: str, cost: float, calls: float | None = None) -> None:
        per_call = f"{calls:8.2f} × {cost / calls:9,.0f}" if calls else " " * 20
        print(f"  {text:44} {per_call} {cost:10,.0f} {100 * cost / breakdown.total:5.1f} %")

    print(f"\n{name}: {breakdown.total:,.0f} Ir per job ({jobs} jobs)")
    outside = breakdown.total - breakdown.script
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
    line("outside (network, parsing, arguments, reply)", outside)
    for function, calls, cost in breakdown.outside:
        if cost >= 0.005 * breakdown.total:
            line(f"  {function}", cost, calls)


def show_own(profile: Profile, jobs: int, top: int) -> None:
    print(f"  the {top} functions with the most instructions of their own:")
    for name, cost in profile.own.most_common(top):
        print(f"    {name:44} {cost / jobs:10,.0f} {100 * cost / profile.total:5.1f} %")


def show_steps(found: list[Step]) -> None:
    """An early return saves nothing, so later calls find less than they would: the figures are a guide."""
    print("   Ir so far       more  until before")
    before = 0.0
    for cost, what in found:
        print(f"{cost:12,.0f} {cost - before:+10,.0f}  {what[:80]}")
        before = cost


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def contender_of(options: argparse.Namespace) -> Contender:
    settings = dict(options.set)
    form = "scripts" if options.steps else options.form
    if options.contender == "floor":
        return Floor()
    if options.constraint:
        return Constrained(SETUPS[options.constraint](), settings, form=form)
    return JQ(settings, form=form)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", choices=["enqueue", "pick", "finish", "finish_next", "all", "life"], default="all")
    parser.add_argument("--contender", choices=["jq", "floor"], default="jq")
    parser.add_argument("--constraint", choices=SETUPS, help="what is in force (kit/constrained.py)")
    parser.add_argument("--form", choices=["functions", "scripts"], default="functions")
    parser.add_argument("--batch", type=int, default=1, help="jobs per call")
    parser.add_argument("--jobs", type=int, default=1600)
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--top", type=int, default=0, help="also the functions with the most of their own")
    parser.add_argument("--steps", action="store_true", help="cut the script (that form) at each statement")
    parser.add_argument("--price", metavar="LUA", help="instructions of a piece of Lua")
    options = parser.parse_args()
    end_on_termination()
    if options.steps and options.op in ("all", "life"):
        parser.error("--steps needs one --op")
    contender = contender_of(options)
    if options.steps and not isinstance(contender, JQ):
        parser.error("--steps is for jq")
    if options.price or options.steps:
        with CountedServer() as server:
            if options.price:
                print(f"{price(server, options.price):,.0f} Ir")
            else:
                show_steps(steps(server, contender, options.op))
        return
    with CountedServer() as server:
        profiles = operations(server, contender, options.batch, options.jobs)
        names = learn_names(server) if options.op != "life" else None
    for name, profile in profiles.items():
        if names and options.op in (name, "all"):
            show(name, split(profile, names, options.jobs), options.jobs)
            if options.top:
                show_own(profile, options.jobs, options.top)
    each = {name: profile.total / options.jobs for name, profile in profiles.items()}
    print("\nIr per job: " + ", ".join(f"{name} {cost:,.0f}" for name, cost in each.items()))
    if "finish" in each:
        print(f"life, three calls: {each['enqueue'] + each['pick'] + each['finish']:,.0f}")
    if "finish_next" in each:
        print(f"life, finish fetching the next: {each['enqueue'] + each['finish_next']:,.0f}")


if __name__ == "__main__":
    main()
