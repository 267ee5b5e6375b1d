"""One worker process with no-op jobs, beside those of other job queues; and how long a result takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from kit import bullmq
from kit.contenders import BENCH
from kit.options import Options
from kit.processes import ROOT, python
from kit.report import Target, at_least, table
from kit.server import Server

CONCURRENCY = 32
PEERS = {"arq": ("arq_", 4), "SAQ": ("saq_", 4), "streaq": ("streaq_", 4), "RQ": ("rq_", 20)}
"""script, and by how much fewer jobs it gets: it is slower"""
LIMITS = {"BullMQ": 3.0}
"""JQ's jobs a second over theirs; of others 1"""
PACKAGES = ["arq", "saq[redis]", "streaq", "rq", "uvloop"]
VENV = ROOT / "var" / "peers"


def install() -> Path:
    """A venv of the peers' own, so that their wishes about versions are not ours."""
    interpreter = VENV / "bin" / "python"
    if not interpreter.exists():
        print("installing the peers from PyPI …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return interpreter


def seconds(command: list[str], jobs: int) -> float:
    """From the first job's start to the last one's, in the worker."""
    with Server() as redis:
        result = subprocess.run(
            [*command, redis.path, str(jobs), str(CONCURRENCY)], cwd=BENCH, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        found = [line for line in result.stdout.splitlines() if line.startswith("{")]
        if not found:
            raise RuntimeError(f"{command}: {result.stderr[-2000:]}")
        return float(json.loads(found[0])["seconds"])


def contenders(options: Options) -> dict[str, tuple[list[str], int]]:
    """name -> command, number of jobs."""
    jobs = options.scaled(20_000, 2_000)
    found = {"JQ": ([sys.executable, "peers/jq.py"], jobs)}
    if options.peers:
        if (problem := bullmq.install()) is None:
            found["BullMQ"] = (["node", "bullmq/worker.js"], jobs)
        else:
            print(f"without BullMQ: {problem}")
        interpreter = str(install())
        for name, (script, fewer) in PEERS.items():
            found[name] = ([interpreter, f"peers/{script}.py"], jobs // fewer)
    return found


def latency(times: int) -> list[float]:
    """Milliseconds from enqueueing until the result is there, with the library, straight on Redis."""
    with Server() as redis:
        url = f"unix://{redis.path}"
        with (
            python("tools/hello.py", url, "work"),
            python("tools/hello.py", url, "ask", str(times), output=True) as asking,
        ):
            return sorted(json.loads(asking.line())[times // 10 :])


def run(options: Options) -> dict[str, Any]:
    rates: dict[str, list[float]] = {}
    found = contenders(options)
    for _ in range(options.rounds):
        for name, (command, jobs) in found.items():
            rates.setdefault(name, []).append(jobs / seconds(command, jobs))
    took_ms = latency(options.scaled(2_000, 200))
    return {
        "concurrency": CONCURRENCY,
        "per_second": {name: median(several) for name, several in rates.items()},
        "result_ms": {"p50": took_ms[len(took_ms) // 2], "p99": took_ms[len(took_ms) * 99 // 100]},
    }


def targets(result: dict[str, Any]) -> list[Target]:
    own = result["per_second"]["JQ"]
    others = {name: rate for name, rate in result["per_second"].items() if name != "JQ"}
    return [
        at_least(f"no-op jobs a second, over {name}", own / rate, LIMITS.get(name, 1), " ×")
        for name, rate in others.items()
    ]


def markdown(result: dict[str, Any]) -> str:
    own = result["per_second"]["JQ"]
    rows = [[name, rate, own / rate] for name, rate in result["per_second"].items()]
    found = result["result_ms"]
    return (
        table(["", "jobs/s", "JQ over it"], rows)
        + f"\n\nOne worker process, {result['concurrency']} at a time (RQ one at a time), jobs enqueued"
        f" before. From enqueueing until the result is there (library, on Redis): p50 {found['p50']:.2f} ms,"
        f" p99 {found['p99']:.2f} ms."
    )
