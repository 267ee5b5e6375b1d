"""From enqueue to start on an idle system: a worker straight on Redis, and one that a master pushes to."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable
from typing import Any

import msgpack
from kit.contenders import JQ
from kit.options import Options
from kit.processes import free_port, python, start_master
from kit.report import Target, at_most, table
from kit.server import Server

QUEUE = "latency"
LIMITS_MS = {"direct worker": 1.0, "HTTP push worker": 5.0}


def at_random(jobs: int, enqueue: Callable[[bytes], None]) -> None:
    """Enqueue one job at a time, far enough apart that everybody sleeps; the argument is the moment of it."""
    for _ in range(jobs):
        time.sleep(random.uniform(0.01, 0.03))
        enqueue(msgpack.packb(time.monotonic_ns()))


def percentiles(waited_ms: list[float]) -> dict[str, float]:
    ordered = sorted(waited_ms[len(waited_ms) // 10 :])  # the first ones warm everything up
    return {
        "p50_ms": ordered[len(ordered) // 2],
        "p99_ms": ordered[len(ordered) * 99 // 100],
        "max_ms": ordered[-1],
    }


def direct(jobs: int, form: str) -> dict[str, float]:
    with Server() as redis:
        wire, jq = redis.wire(), JQ(form=form)
        jq.prepare(wire)
        kind, pick = jq.called("pick")
        spec = msgpack.packb({"name": QUEUE})
        command = ("tools/direct_worker.py", redis.path, kind, pick, jq.called("finish")[1], str(jobs))
        with python(*command, output=True) as worker:
            worker.line()
            at_random(jobs, lambda argument: wire.send(jq.command("enqueue", spec, argument)))
            return percentiles(json.loads(worker.line()))


def push(jobs: int) -> dict[str, float]:
    headers = {"content-type": "application/msgpack", "accept": "application/msgpack"}
    port, worker_port = free_port(), free_port()
    with Server() as redis, start_master(redis.path, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

        def post(path: str, body: bytes) -> Any:
            connection.request("POST", path, body=body, headers=headers)
            response = connection.getresponse()
            content = response.read()
            if response.status >= 300:
                raise RuntimeError(f"POST {path}: {response.status} {content!r}")
            return msgpack.unpackb(content)

        with python("tools/push_worker.py", str(worker_port), str(jobs), output=True) as worker:
            worker.line()
            url = f"http://127.0.0.1:{worker_port}"
            spec = {"name": "push", "queues": [QUEUE], "url": url, "max_jobs": 10}
            post("/worker", msgpack.packb(spec))
            head = b"\x82" + msgpack.packb("name") + msgpack.packb(QUEUE) + msgpack.packb("argument")
            at_random(jobs, lambda argument: post("/job", head + argument))
            return percentiles(json.loads(worker.line()))


def run(options: Options) -> dict[str, Any]:
    jobs = options.scaled(1_000, 150, 400)
    found = {"direct worker": direct(jobs, options.form), "HTTP push worker": push(jobs)}
    return {"jobs": jobs, "workers": found}


def targets(result: dict[str, Any]) -> list[Target]:
    return [
        at_most(f"enqueue → start, {who}, p50", result["workers"][who]["p50_ms"], limit_ms, " ms")
        for who, limit_ms in LIMITS_MS.items()
    ]


def markdown(result: dict[str, Any]) -> str:
    rows = [[who, found["p50_ms"], found["p99_ms"], found["max_ms"]] for who, found in result["workers"].items()]
    note = f"{result['jobs']:,} jobs, 10 to 30 ms apart; from before enqueueing until the worker has it."
    return table(["", "p50 ms", "p99 ms", "max ms"], rows) + "\n\n" + note
