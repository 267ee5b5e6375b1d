"""A worker straight on Redis, as docs/protocol.md section 5 says: pick, sleep on the marker, pick again.

    tools/direct_worker.py <socket> <command> <pick> <finish> <jobs>      (FCALL or EVALSHA, what it names)

A job's argument is the moment it was enqueued (monotonic clock, shared by all processes of a machine). Prints
"ready", then the milliseconds from enqueue to start of every job as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import msgpack

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.wire import Wire

CHANNEL, WAIT_MS = "bench", 30_000


def main(path: str, command: str, pick: str, finish: str, jobs: int) -> None:
    wire = Wire(path)
    spec = msgpack.packb({"worker": "direct", "queues": "latency", "wait": {"on": CHANNEL, "ms": WAIT_MS}})
    keys = (2, "{jq}", "{jq}:meta")
    waited_ms: list[float] = []
    print("ready", flush=True)
    while len(waited_ms) < jobs:
        next_ms, *found = wire.call(command, pick, *keys, spec)
        now = time.monotonic_ns()
        if not found:
            limit_ms = WAIT_MS if next_ms < 0 else min(WAIT_MS, max(1, next_ms))
            wire.call("BZPOPMIN", f"{{jq}}:wake:{CHANNEL}", limit_ms / 1000)
            continue
        for document, argument in zip(found[::2], found[1::2], strict=True):
            waited_ms.append((now - msgpack.unpackb(argument)) / 1e6)
            job = msgpack.unpackb(document)
            outcome = msgpack.packb({"id": job["id"], "token": job["token"], "type": "success"})
            wire.call(command, finish, *keys, msgpack.packb({"worker": "direct"}), outcome, b"\xc0")
    print(json.dumps(waited_ms), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
