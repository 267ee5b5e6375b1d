"""Sends right, odd and broken inputs to every script and to a master, and checks what must hold whatever comes.

``python tools/fuzz.py [--seed N] [--inputs N | --seconds S] [--only scripts|http]`` takes servers of its own. It tells
what an input that finds a fault was, and goes on with ``--go-on``. The same seed and round make the same inputs, but
for tokens: ``--first ROUND`` begins there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.extend(str(Path(__file__).resolve().parents[1] / "tests" / "py" / room) for room in ("support", "model"))

from fuzz_http import HttpFuzzer, fuzzed_master
from fuzz_scripts import Fault, Report, ScriptFuzzer, fuzzed_server

ROUNDS_OF_A_MASTER = 10


def by_scripts(seed: str, first: int) -> Iterator[tuple[str, Report, Callable[[], None]]]:
    """Rounds in both forms, in turn."""
    with fuzzed_server() as one, fuzzed_server() as other:
        fuzzers = {form: ScriptFuzzer(server, form, seed) for form, server in (("functions", one), ("scripts", other))}
        while True:
            for form, fuzzer in fuzzers.items():
                yield f"{form}, round {first}", fuzzer.report, lambda fuzzer=fuzzer, number=first: fuzzer.round(number)
            first += 1


def by_http(seed: str, first: int) -> Iterator[tuple[str, Report, Callable[[], None]]]:
    """Rounds of requests, to a new master now and then."""
    report = Report()
    while True:
        with ExitStack() as stack:
            server = stack.enter_context(fuzzed_server())
            fuzzer = HttpFuzzer(server, stack.enter_context(fuzzed_master(server)), seed)
            fuzzer.report = report
            for _ in range(ROUNDS_OF_A_MASTER):
                yield f"http, round {first}", report, lambda fuzzer=fuzzer, number=first: fuzzer.round(number)
                first += 1
            yield f"http, behind round {first - 1}", report, fuzzer.close


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--inputs", type=int, default=20_000, help="about so many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="instead: for so long")
    parser.add_argument("--only", choices=("scripts", "http"))
    parser.add_argument("--first", type=int, default=0, metavar="ROUND")
    parser.add_argument("--go-on", action="store_true", help="behind a fault, with the next round")
    options = parser.parse_args()
    sources = {"scripts": by_scripts, "http": by_http}
    running = [make(options.seed, options.first) for name, make in sources.items() if options.only in (None, name)]
    reports: dict[int, Report] = {}
    faults, began = 0, time.monotonic()
    while True:
        for source in running:
            title, report, run = next(source)
            reports[id(report)] = report
            try:
                run()
            except Fault as fault:
                faults += 1
                print(f"FAULT, seed {options.seed}, {title}: {fault}", flush=True)
                if not options.go_on:
                    return 1
        done, took_s = sum(one.inputs for one in reports.values()), time.monotonic() - began
        if took_s >= options.seconds if options.seconds else done >= options.inputs:
            break
    for source in running:
        source.close()  # type: ignore[attr-defined]
    for report in reports.values():
        print(report)
    print(f"{done} inputs in {took_s:.0f} s, seed {options.seed}: {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
