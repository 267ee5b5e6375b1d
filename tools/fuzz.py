"""Sends right, odd and broken inputs to every script and to a server, and checks what must hold whatever comes.

``python tools/fuzz.py [--seed N] [--seconds S] [--only scripts|http]`` takes servers of its own, and stops at the first
fault. The same seed makes the same inputs, but for tokens.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.extend(str(Path(__file__).resolve().parents[1] / "tests" / "py" / room) for room in ("support", "model"))

from fuzz_http import HttpFuzzer, fuzzed_master
from fuzz_scripts import Fault, Report, ScriptFuzzer
from refusal_data import debug_server

ROUNDS_OF_A_SERVER = 10


def by_scripts(seed: str, form: str) -> Iterator[Report]:
    with debug_server() as server:
        fuzzer = ScriptFuzzer(server, form, seed)
        for number in itertools.count():
            fuzzer.round(number)
            yield fuzzer.report


def by_http(seed: str) -> Iterator[Report]:
    """A new server now and then."""
    report = Report()
    for first in itertools.count(0, ROUNDS_OF_A_SERVER):
        with ExitStack() as stack:
            server = stack.enter_context(debug_server())
            fuzzer = HttpFuzzer(server, stack.enter_context(fuzzed_master(server)), seed)
            fuzzer.report = report
            for number in range(first, first + ROUNDS_OF_A_SERVER):
                fuzzer.round(number)
                yield report
            fuzzer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", choices=("scripts", "http"))
    options = parser.parse_args()
    sources = {
        "functions": by_scripts(options.seed, "functions"),
        "scripts": by_scripts(options.seed, "scripts"),
        "http": by_http(options.seed),
    }
    names = [name for name in sources if options.only in (None, "http" if name == "http" else "scripts")]
    reports: dict[str, Report] = {}
    until = time.monotonic() + options.seconds
    for number in itertools.count():
        for name in names:
            try:
                reports[name] = next(sources[name])
            except Fault as fault:
                print(f"FAULT, seed {options.seed}, {name}, round {number}: {fault}")
                return 1
        if time.monotonic() > until:
            break
    for name in names:
        sources[name].close()  # type: ignore[attr-defined]
        print(f"{name}: {reports[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
