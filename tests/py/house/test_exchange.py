"""The exchange in bytes that docs/protocol.md shows, played against a real Redis.

`make records` writes it anew
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from jqmaster.bundle.built import builtin
from jqmaster.engine.engine import connect
from jqmaster.engine.scripts import load
from servers import RedisServer

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"
NAMESPACE = "{jq}"
WIDTH = 100
BLOCK = re.compile(r"(<!-- tests/py/house/test_exchange.py writes this -->\n```\n)(.*?)(```\n)", re.DOTALL)
# What is new each time has always the same length: shas, ids of jobs, tokens.
VARIES = re.compile(rb"\b[0-9a-f]{40}\b|(?<![0-9a-f])[0-9a-f]{14}(?![0-9a-f])|\d-[0-9a-f]{12}")

Exchange = list[tuple[str, bytes, bytes]]
"""What each call is about, its request, the reply."""


def shown(data: bytes) -> str:
    """Bytes as text: a piece for each line of Redis's protocol."""
    text = data.decode("latin-1").replace("\\", "\\\\").replace("\r\n", "\\r\\n")
    return re.sub(r"[^\x20-\x7e]", lambda found: f"\\x{ord(found[0]):02x}", text)


def read(text: str) -> bytes:
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def folded(arrow: str, data: bytes) -> Iterator[str]:
    """Lines no longer than the page is wide. A length stays with what it is the length of, where that fits."""
    begin = line = f"{arrow} "
    for piece in re.findall(r"(?:\$\d+\\r\\n)?.*?\\r\\n", shown(data)):
        whole = len(piece) <= WIDTH - 2
        for part in [piece] if whole else re.findall(r"(?:\\x..)+[^\\]*|\\..|[^\\]+", piece):
            if line != begin and len(line) + len(part) > WIDTH:
                yield line
                begin = line = "  "
            line += part
    yield line


def written(exchange: Exchange) -> str:
    calls = ([f"# {about}", *folded("→", request), *folded("←", reply)] for about, request, reply in exchange)
    return "\n\n".join("\n".join(lines) for lines in calls) + "\n"


def documented() -> Exchange:
    [found] = BLOCK.findall(PAGE.read_text())
    exchange = []
    for call in found[1].strip("\n").split("\n\n"):
        about, *lines = call.split("\n")
        begin = next(at for at, line in enumerate(lines) if line.startswith("←"))
        sides = ("".join(line[2:] for line in side) for side in (lines[:begin], lines[begin:]))
        exchange.append((about.removeprefix("# "), *map(read, sides)))
    return exchange


def command(*arguments: bytes) -> bytes:
    parts = [b"$%d\r\n%s\r\n" % (len(argument), argument) for argument in arguments]
    return b"*%d\r\n%s" % (len(parts), b"".join(parts))


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


def recorded(server: RedisServer) -> Exchange:
    """One job's life, as it is on the wire now."""
    exchange: Exchange = []
    operations = [b"setup", b"enqueue", b"pick", b"finish"]
    with Wire(server) as wire:

        def ask(about: str, *arguments: bytes) -> bytes:
            request = command(*arguments)
            exchange.append((about, request, wire.ask(request)))
            return exchange[-1][2]

        reply = ask("The manifest names the scripts", b"HMGET", b"{jq}:manifest", *operations)
        shas = dict(zip(operations, re.findall(rb"[0-9a-f]{40}", reply), strict=True))

        def call(about: str, operation: bytes, *arguments: object) -> bytes:
            packed = [value if isinstance(value, bytes) else msgpack.packb(value) for value in arguments]
            return ask(about, b"EVALSHA", shas[operation], b"2", b"{jq}", b"{jq}:meta", *packed)

        call("setup → the schema's version", b"setup")
        spec = {"name": "add", "keep_result": True}
        call("enqueue {name: add, keep_result: true}, argument [40, 2] → id, created", b"enqueue", spec, [40, 2])
        wish = {"worker": "w1", "queues": "add"}
        reply = call("pick {worker: w1, queues: add} → next_ms, document, argument", b"pick", wish)
        document = msgpack.unpackb(re.findall(rb"\$\d+\r\n([\x80-\x8f].*?)\r\n\$3", reply, re.DOTALL)[0])
        outcome = {"id": document["id"], "token": document["token"], "type": "success"}
        call(
            "finish {worker: w1}, {id, token, type: success}, result 42 → state",
            b"finish",
            {"worker": "w1"},
            outcome,
            42,
        )
        stale = {**outcome, "token": "1-000000000000"}
        call(
            "finish with a token that is not the job's → no error, LOST for this job",
            b"finish",
            {"worker": "w1"},
            stale,
            42,
        )
        call("enqueue with a mistake → an error reply", b"enqueue", {"name": "add", "priority": 1.5}, [40, 2])
    return exchange


@pytest.fixture
async def loaded(fresh_server: RedisServer) -> RedisServer:
    await prepare(fresh_server)
    return fresh_server


def test_the_documented_exchange(loaded: RedisServer) -> None:
    """Each request, byte for byte but for what the replies before it gave, gets the reply that the page shows."""
    given: dict[bytes, bytes] = {}

    def translated(data: bytes) -> bytes:
        return VARIES.sub(lambda found: given.get(found[0], found[0]), data)

    with Wire(loaded) as wire:
        for about, request, reply in documented():
            real = wire.ask(translated(request))
            assert len(real) == len(reply), (about, real)
            given |= {found[0]: real[found.start() : found.end()] for found in VARIES.finditer(reply)}
            assert real == translated(reply), about


def test_the_exchange_is_as_it_would_be_written(loaded: RedisServer) -> None:
    """Other calls than those that the program makes are not on the page, nor in another form."""
    assert still(documented()) == still(recorded(loaded))


def still(exchange: Exchange) -> list[str]:
    """What does not differ each time."""
    return written([(about, *(VARIES.sub(b"-", side) for side in sides)) for about, *sides in exchange]).split()


async def prepare(server: RedisServer) -> None:
    async with connect(server.url) as client:
        await load(client, NAMESPACE)
        for script in builtin().values():  # as after the NOSCRIPT of each
            await client.script_load(script.source)


if __name__ == "__main__":
    with RedisServer() as fresh:
        asyncio.run(prepare(fresh))
        now = recorded(fresh)
    if still(now) != still(documented()):
        PAGE.write_text(BLOCK.sub(lambda found: found[1] + written(now) + found[3], PAGE.read_text()))
