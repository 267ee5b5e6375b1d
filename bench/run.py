"""What JQ costs, beside other job queues and the least that a queue can do. README.md says how to read the figures.

    bench/run.py                          all parts
    bench/run.py --parts http,engine      some parts
    bench/run.py --quick                  small numbers: whether it runs, not what it costs
    bench/run.py --against ../before      another checkout beside this one (instructions, engine, http)

Parts start servers of their own, and stop them. Tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from kit.server import end_on_termination
from kit.tables import Options

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
PARTS = {
    "instructions": "instructions in Redis for a job's life, by callgrind: the same on every machine",
    "engine": "Redis CPU of a job's life by the thinnest client, beside the floor",
    "peers": "the library beside BullMQ, RQ, huey, arq, dramatiq and Celery",
    "http": "server CPU of enqueue, pick and finish over HTTP",
    "cluster": "what more nodes of a Redis Cluster bring",
    "bounds": "the longest single calls",
    "memory": "bytes for each waiting job",
    "ui": "what the pages of the UI weigh, and when they paint",
}


def parse(arguments: Sequence[str] | None = None) -> tuple[list[str], Options]:
    parts = "\n".join(f"  {name:14}{what}" for name, what in PARTS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\nparts:\n{parts}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas")
    parser.add_argument("--quick", action="store_true", help="small numbers")
    parser.add_argument("--rounds", type=int, default=0, help="sides take turns so often; medians count (5; quick: 1)")
    parser.add_argument("--no-peers", action="store_true", help="without other job queues, which are installed in var/")
    parser.add_argument("--against", type=Path, help="another checkout of JQ")
    chosen = parser.parse_args(arguments)
    names = chosen.parts.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    rounds = chosen.rounds or (1 if chosen.quick else 5)
    against = chosen.against and chosen.against.resolve()
    return names, Options(chosen.quick, rounds, not chosen.no_peers, against)


def machine() -> str:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    redis = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()
    version = next((word[2:] for word in redis if word.startswith("v=")), "?")
    load = f"{os.cpu_count()} cores with load {os.getloadavg()[0]:.1f}"
    return f"JQ at {commit.stdout.strip()}, Redis {version}, Python {sys.version.split()[0]}, {load}"


def main() -> None:
    names, options = parse()
    end_on_termination()
    os.chdir(HERE)
    for name in names:
        began = time.monotonic()
        print(f"\n## {name}: {PARTS[name]}", flush=True)
        with ExitStack() as stack:
            for table in importlib.import_module(f"parts.{name}").tables(options, stack):
                table.run(options.rounds)
                print(f"\n{table.markdown()}", flush=True)
        print(f"\n{machine()}; {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
