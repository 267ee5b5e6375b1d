"""HTTP: single enqueues against a bare Quart echo on the same Hypercorn, and 100 jobs in one POST."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgpack
from kit.contenders import ARGUMENT, NAME
from kit.options import Options
from kit.processes import Program, free_port, python, start_master, wait_for_http
from kit.report import Target, at_least, table
from kit.server import Server
from kit.timing import medians
from kit.wire import Wire

CONNECTIONS = 32
ALONE, BULK_ALONE = "POST /job, one at a time", "POST /jobs, one at a time"
JOB = {"name": NAME, "argument": msgpack.unpackb(ARGUMENT)}
BODIES = {"single": JOB, "jobs": {"jobs": [JOB] * 100}}
CASES = (
    ("echo", "/echo", "single", 1, CONNECTIONS),
    ("POST /job", "/job", "single", 1, CONNECTIONS),
    ("POST /jobs", "/jobs", "jobs", 100, CONNECTIONS),
    (ALONE, "/job", "single", 1, 1),
    (BULK_ALONE, "/jobs", "jobs", 100, 1),
)
"""What, path, body, jobs in it, connections. A master enqueues in one call what comes at the same time;
what comes one at a time costs a call each."""


def load(
    server: Program, wire: Wire, port: int, path: str, body: Path, connections: int, seconds: float
) -> dict[str, float]:
    client = python("tools/load.py", str(port), path, str(body), str(connections), str(seconds), output=True)
    with client:
        client.line()
        cpu_s, redis_us = server.cpu_s(), wire.cpu_us()
        found = json.loads(client.line())
        cpu_s, redis_us = server.cpu_s() - cpu_s, wire.cpu_us() - redis_us
    if found["lost"] or any(not status.startswith("2") for status in found["statuses"]):
        raise RuntimeError(f"{path}: {found['lost']} connections lost, answers {found['statuses']}")
    return {
        "per_s": found["requests"] / found["seconds"],
        "server_cpu_us": cpu_s * 1e6 / found["requests"],
        "redis_cpu_us": redis_us / found["requests"],
        "p50_ms": found["p50_ms"],
        "p99_ms": found["p99_ms"],
    }


def run(options: Options) -> dict[str, Any]:
    seconds = options.scaled(4, 1, 2)
    rounds: list[dict[str, Any]] = []
    with Server() as redis, tempfile.TemporaryDirectory() as directory:
        files = {name: Path(directory) / name for name in BODIES}
        for name, file in files.items():
            file.write_bytes(msgpack.packb(BODIES[name]))
        echo_port, master_port = free_port(), free_port()
        with (
            python("tools/echo_server.py", str(echo_port)) as echo,
            start_master(redis.path, master_port) as master,
        ):
            wait_for_http(echo, echo_port, "POST", "/echo")
            wire = redis.wire()
            for number in range(options.rounds):
                found: dict[str, Any] = {}
                # Whoever goes second finds a machine that is warmer or busier: change places.
                for what, path, body, _, connections in CASES if number % 2 else CASES[::-1]:
                    server, port = (echo, echo_port) if what == "echo" else (master, master_port)
                    found[what] = load(server, wire, port, path, files[body], connections, seconds)
                rounds.append(found)
    result = {case[0]: medians([found[case[0]] for found in rounds]) for case in CASES}
    for what, _, _, jobs, _ in CASES[1:]:
        result[what]["jobs_per_s"] = jobs * result[what]["per_s"]
    ratios = {
        f"{what} over {other}": median(found[what]["per_s"] / found[other]["per_s"] for found in rounds)
        for what, other in (("POST /job", "echo"), (BULK_ALONE, ALONE))
    }
    return {"connections": CONNECTIONS, "rounds": options.rounds, "cases": result, "ratios": ratios}


def targets(result: dict[str, Any]) -> list[Target]:
    ratios, cases = result["ratios"], result["cases"]
    over = 100 * ratios[f"{BULK_ALONE} over {ALONE}"]
    bulk_cpu = 100 * cases[ALONE]["server_cpu_us"] / cases[BULK_ALONE]["server_cpu_us"]
    cpu = cases["echo"]["server_cpu_us"] / cases["POST /job"]["server_cpu_us"]
    single = at_least("HTTP: POST /job over a bare Quart echo, requests/s", ratios["POST /job over echo"], 0.85, " ×")
    single.value += f" (by the server's CPU {cpu:.2f} ×)"
    bulk = at_least("HTTP: jobs/s, 100 in one POST over one, one POST at a time", over, 50, " ×", 1)
    bulk.value += f" (by the server's CPU {bulk_cpu:.1f} ×)"
    return [single, bulk]


def markdown(result: dict[str, Any]) -> str:
    columns = ("per_s", "jobs_per_s", "server_cpu_us", "redis_cpu_us", "p50_ms", "p99_ms")
    rows = [[what, *[found.get(column) for column in columns]] for what, found in result["cases"].items()]
    head = ["", "requests/s", "jobs/s", "server CPU µs per request", "Redis CPU µs", "p50 ms", "p99 ms"]
    note = (
        f"{result['connections']} connections (one at a time: 1), MessagePack, 200-byte argument, one server "
        f"process each; medians of {result['rounds']} rounds in turn. "
        "The load generator and Redis share the cores with the server."
    )
    return table(head, rows) + "\n\n" + note
