"""A worker that a master pushes to; it answers 200 with the outcome at once.

    tools/push_worker.py <port> <jobs>

Prints "ready", then the milliseconds from enqueue to start of every job as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import msgpack
import uvloop

OUTCOME = msgpack.packb({"type": "success"})
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/msgpack\r\ncontent-length: %d\r\n\r\n" % len(OUTCOME) + OUTCOME


class Delivery(asyncio.Protocol):
    def __init__(self, waited_ms: list[float], jobs: int, over: asyncio.Event) -> None:
        self.waited_ms, self.jobs, self.over = waited_ms, jobs, over
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r", 1)[0])
        if len(self.buffer) < end + 4 + length:
            return
        job = msgpack.unpackb(self.buffer[end + 4 : end + 4 + length])
        self.buffer = b""
        self.waited_ms.append((now - job["argument"]) / 1e6)
        self.transport.write(ANSWER)  # type: ignore[attr-defined]
        if len(self.waited_ms) == self.jobs:
            self.over.set()


async def main(port: int, jobs: int) -> None:
    waited_ms: list[float] = []
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Delivery(waited_ms, jobs, over), "127.0.0.1", port)
    print("ready", flush=True)
    await over.wait()
    print(json.dumps(waited_ms), flush=True)
    await asyncio.sleep(0.2)  # the last answer goes out
    server.close()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
