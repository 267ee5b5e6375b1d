"""An HTTP load generator that is never the bottleneck: keep-alive connections, one request under way on each.

    tools/load.py <port> <path> <body file> <connections> <seconds>

Prints one line of JSON: requests, seconds, statuses, and the latency's median and 99th percentile.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

import uvloop

WARM_UP_S = 0.3


class Connection(asyncio.Protocol):
    """Sends the same request again as soon as it is answered. Understands answers with a content-length."""

    def __init__(self, request: bytes, run: Run) -> None:
        self.request = request
        self.run = run
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.sent = time.perf_counter()
        self.transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        start = head.find(b"content-length:")
        stop = head.find(b"\r", start)
        length = int(head[start + 15 : stop if stop > 0 else end]) if start >= 0 else 0
        if len(self.buffer) < end + 4 + length:
            return
        self.buffer = b""
        self.run.answered(head[9:12].decode(), time.perf_counter() - self.sent)
        if not self.run.over:
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.run.over:
            self.run.lost += 1


class Run:
    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.counting = self.over = False
        self.lost = 0

    def answered(self, status: str, took_s: float) -> None:
        if self.counting:
            self.statuses[status] += 1
            self.latencies.append(took_s)


async def main(port: int, path: str, body: bytes, connections: int, seconds: float) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/msgpack\r\n"
        f"accept: application/msgpack\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    run = Run()
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(head.encode() + body, run), "127.0.0.1", port)
    await asyncio.sleep(WARM_UP_S)
    run.counting, started = True, time.perf_counter()
    print("counting", flush=True)
    await asyncio.sleep(seconds)
    run.counting, took_s = False, time.perf_counter() - started
    run.over = True
    latencies = sorted(run.latencies)
    print(
        json.dumps(
            {
                "requests": len(latencies),
                "seconds": took_s,
                "statuses": run.statuses,
                "lost": run.lost,
                "p50_ms": 1000 * latencies[len(latencies) // 2],
                "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    _, port, path, body_file, connections, seconds = sys.argv
    uvloop.run(main(int(port), path, Path(body_file).read_bytes(), int(connections), float(seconds)))
