"""The exchange in bytes that docs/protocol.md shows, played against a real Redis."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from jqmaster.bundle.build import builtin
from jqmaster.engine.engine import connect
from jqmaster.engine.scripts import load
from servers import RedisServer

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"
BLOCK = re.compile(r"<!-- tests/py/house/test_exchange.py plays this -->\n```\n(.*?)```\n", re.DOTALL)
# What is new each time has always the same length: shas, ids of jobs, tokens.
VARIES = re.compile(rb"\b[0-9a-f]{40}\b|(?<![0-9a-f])[0-9a-f]{14}(?![0-9a-f])|\d-[0-9a-f]{12}")


def documented() -> list[tuple[str, bytes, bytes]]:
    """What each call is about, its request, the reply."""
    [found] = BLOCK.findall(PAGE.read_text())
    exchange = []
    for call in found.strip("\n").split("\n\n"):
        about, *lines = call.split("\n")
        begin = next(at for at, line in enumerate(lines) if line.startswith("←"))
        sides = ("".join(line[2:] for line in side) for side in (lines[:begin], lines[begin:]))
        exchange.append((about, *(side.encode("latin-1").decode("unicode_escape").encode("latin-1") for side in sides)))
    return exchange


class Wire:
    """A connection that sends and reads bytes, and nothing else."""

    def __init__(self, server: RedisServer) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(server.socket))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def reply(self) -> bytes:
        line = self.file.readline()
        kind, size = line[:1], line[1:-2]
        if kind == b"$" and size != b"-1":
            return line + self.file.read(int(size) + 2)
        return line + b"".join(self.reply() for _ in range(int(size) if kind == b"*" else 0))

    def ask(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        return self.reply()


async def test_the_documented_exchange(fresh_server: RedisServer) -> None:
    """Each request, byte for byte but for what the replies before it gave, gets the reply that the page shows."""
    async with connect(fresh_server.url) as client:
        await load(client, "{jq}")
        for script in builtin().values():  # as after the NOSCRIPT of each
            await client.script_load(script.source)
    given: dict[bytes, bytes] = {}

    def translated(data: bytes) -> bytes:
        return VARIES.sub(lambda found: given.get(found[0], found[0]), data)

    with Wire(fresh_server) as wire:
        for about, request, reply in documented():
            real = wire.ask(translated(request))
            assert len(real) == len(reply), (about, real)
            given |= {found[0]: real[found.start() : found.end()] for found in VARIES.finditer(reply)}
            assert real == translated(reply), about
