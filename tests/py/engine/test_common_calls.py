"""What common calls need is known to the build: scripts/common.json says what these calls really do.

`make records` writes the file anew
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import redis

from jqmaster.bundle.build import Builder
from jqmaster.bundle.script import Chunk
from jqmaster.bundle.source import Item
from jqmaster.engine.engine import pack
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
COMMON = ROOT / "scripts" / "common.json"
NEEDED = "needed"
QUEUE = "mail"
ARGUMENT = pack({"customer": "acme"})
STILL = 'redis.call("TIME")', '{ "1700000000", "123456" }'

Recorded = dict[str, dict[str, list[str]]]
"""By operation and name of the call: labels of what it needs."""
Call = Callable[..., Any]


class Recording(Chunk):
    """Each item stands alone, and says when it is needed."""

    when_needed = f'redis.call("RPUSH", "{NEEDED}", n)'

    def group(self, item: Item) -> Item:
        return item


class Recorder:
    """Calls operations, and notes what some calls need."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.chunks = {script.name: Recording(script) for script in Builder(ROOT, "server").scripts()}
        # Without a first line they may all write, the note of what is needed at least. Time stands still, so
        # that what is done once in some seconds is not done again.
        self.sources = {name: chunk.text().replace(*STILL) for name, chunk in self.chunks.items()}
        assert STILL[1] in self.sources["pick"]
        self.recorded: Recorded = {}

    def call(self, operation: str, *arguments: object, record: str = "") -> Any:
        self.client.delete(NEEDED)
        packed = [value if isinstance(value, bytes) else pack(value) for value in arguments]
        reply = self.client.eval(self.sources[operation], 2, "{r}", "{r}:meta", *packed)
        if record:
            items = [str(items[0]) for items in self.chunks[operation].lazy.values()]
            needed = {items[int(n) - 1] for n in self.client.lrange(NEEDED, 0, -1)}
            self.recorded.setdefault(operation, {})[record] = sorted(needed)
        return reply


def started(reply: list[Any]) -> list[list[str]]:
    """Ids and tokens of jobs in a pick's reply."""
    documents = [msgpack.unpackb(part) for part in reply if isinstance(part, bytes) and part >= b"\x80"]
    return [[found["id"], found["token"]] for found in documents if isinstance(found, dict) and "token" in found]


def outcome(held: list[str], **more: object) -> dict[str, object]:
    return {"id": held[0], "token": held[1], "type": "success", **more}


def plain(call: Call) -> None:
    """One job at a time, of a queue that has had some."""
    for record in "", "plain":
        for _ in range(5):
            call("enqueue", {"name": QUEUE}, ARGUMENT, record=record)
        first, second, third, last = (
            started(call("pick", {"worker": "w", "queues": QUEUE}, record=record))[0] for _ in range(4)
        )
        call("heartbeat", {"worker": "w", "jobs": [first]}, record=record)
        call("finish", {"worker": "w"}, outcome(first), b"\xc0", record=record)
        fetched = call(
            "finish",
            {"worker": "w", "pick": {"queues": QUEUE}},
            outcome(second),
            b"\xc0",
            record=record and "next",
        )
        call("finish", {"worker": "w"}, outcome(third, type="failure"), b"\xc0", record=record and "failure")
        call("release", {"worker": "w", "jobs": [last]}, record=record)
        call("finish", {"worker": "w"}, outcome(started(fetched)[0]), b"\xc0")
        call("cancel", {"ids": [last[0]]}, record=record)
        call("tick", {}, record=record)


def with_worker(call: Call) -> None:
    """As the Python library's workers call, which sleep when there is nothing to do."""
    wish = {"queues": [QUEUE, "other"], "order": "priority", "count": 1}
    wait = {"wait": {"on": "channel", "ms": 60000}}
    for record in "", "worker":
        call("pick", {"worker": "w", **wish, **wait})
        call("enqueue", {"name": QUEUE}, ARGUMENT, record=record)
        call("enqueue", {"name": "other"}, ARGUMENT)
        [held] = started(call("pick", {"worker": "w", **wish, **wait}, record=record))
        call("heartbeat", {"worker": "w", "jobs": [held], "control": True}, record=record)
        reply = call("finish", {"worker": "w", "pick": wish}, outcome(held), b"\xc0", record=record)
        call("finish", {"worker": "w", "pick": wish}, outcome(started(reply)[0]), b"\xc0")


def pushed(call: Call) -> None:
    """Jobs that a master assigns."""
    worker = call("register", {"name": "w", "queues": [QUEUE], "url": "http://127.0.0.1:1/", "max_jobs": 9}).decode()
    for record in "", "pushed":
        call("enqueue", {"name": QUEUE}, ARGUMENT)
        reply = call("assign", {"master": "m", "limit": 9, "wait": {"on": "push", "ms": 60000}}, record=record)
        call("heartbeat", {"worker": worker, "jobs": started(reply), "control": True}, record=record)
        call("finish", {"worker": worker}, outcome(started(reply)[0]), b"\xc0", record=record)


def constrained(call: Call) -> None:
    """Under a constraint with a key for each customer."""
    call("constrain", {"id": "c", "by": "argument.customer", "concurrency": 2}, {"name": QUEUE})
    while call("tick", {})[1]:
        pass
    for record in "", "constrained":
        for _ in range(3):
            call("enqueue", {"name": QUEUE}, ARGUMENT, record=record)
        [held] = started(call("pick", {"worker": "w", "queues": QUEUE}, record=record))
        reply = call("finish", {"worker": "w", "pick": {"queues": QUEUE}}, outcome(held), b"\xc0", record=record)
        call("finish", {"worker": "w"}, outcome(started(reply)[0]), b"\xc0")


def record(server: RedisServer) -> Recorded:
    with server.client() as client:
        recorder = Recorder(client)
        for scenario in plain, with_worker, pushed, constrained:
            client.flushall()
            recorder.call("setup")
            scenario(recorder.call)
    return recorder.recorded


def test_the_build_knows_what_common_calls_need(fresh_server: RedisServer) -> None:
    found = record(fresh_server)
    assert found == json.loads(COMMON.read_text()), "write it anew: make records"


if __name__ == "__main__":
    with RedisServer() as server:
        COMMON.write_text(json.dumps(record(server), indent=1) + "\n")
    sys.exit()
