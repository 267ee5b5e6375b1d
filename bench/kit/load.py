"""An HTTP load that is never the bottleneck: keep-alive connections, one request under way on each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Load:
    """POSTs bodies of MessagePack to a path, each once."""

    port: int
    path: str
    left: list[bytes]
    answers: list[bytes] = field(default_factory=list)
    problem: str = ""

    def next(self) -> bytes | None:
        if not self.left or self.problem:
            return None
        body = self.left.pop()
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/msgpack\r\n"
            f"accept: application/msgpack\r\nworker-id: bench\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class Connection(asyncio.Protocol):
    """Understands answers with a content-length, or without content."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer = load, b""
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = self.load.next()
        if request is None:
            self.transport.close()
        else:
            self.transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = int((head.lower() + b"\r\n").partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if not end or len(body) < length:
            return
        if not head.split()[1].startswith(b"2"):
            self.load.problem = f"{self.load.path}: {self.buffer[:500]!r}"
        self.load.answers.append(body)
        self.buffer = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set_result(None)


def post(port: int, path: str, bodies: Sequence[bytes], connections: int = 32) -> tuple[list[bytes], float]:
    """The answers, in any order, and the seconds that it took. Raises RuntimeError for one that is no success."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        opened = [await loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(connections)]
        for _, connection in opened:
            await connection.closed

    load, began = Load(port, path, list(bodies)), time.perf_counter()
    asyncio.run(run())
    if load.problem or len(load.answers) != len(bodies):
        raise RuntimeError(load.problem or f"{path}: {len(load.answers)} of {len(bodies)} answered")
    return load.answers, time.perf_counter() - began
