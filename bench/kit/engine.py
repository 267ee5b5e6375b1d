"""The engine and the floor as the thinnest client calls them: commands are packed here, replies are read here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgpack
from kit.wire import Command, Wire, pack

from jqmaster.bundle import build

BENCH = Path(__file__).resolve().parents[1]
NAME = "mail.send1"
NIL = b"\xc0"
ARGUMENT = msgpack.packb(b"a" * 198)  # 200 bytes
Spec = dict[str, Any]
Token = Any


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


@cache
def built(checkout: Path | None = None, clock: Literal["server", "settable"] = "server") -> build.Bundle:
    """Once: a run measures one engine, also while somebody edits it."""
    return build.build(checkout or BENCH.parent, clock)


class Floor:
    """INCR+SET+ZADD, ZPOPMIN+GET+ZADD, ZREM+DEL (`floor/*.lua`): the least that a queue with leases can do. In batches
    one command of each kind for all jobs of a call."""

    def prepare(self, wire: Wire) -> None:
        wire.call("FLUSHALL")
        scripts = (BENCH / "floor").glob("*.lua")
        self.sha = {path.stem: wire.call("SCRIPT", "LOAD", path.read_bytes()) for path in scripts}

    def command(self, script: str, *arguments: Any) -> Command:
        return pack("EVALSHA", self.sha[script], 2, "{fl}", "{fl}:meta", *arguments)

    def enqueue(self, jobs: int, batch: int) -> list[Command]:
        script = "enqueue" if batch == 1 else "enqueue_many"
        return [self.command(script, *[ARGUMENT] * batch)] * (jobs // batch)

    def pick(self, jobs: int, batch: int) -> list[Command]:
        due_ms = 1_700_000_030_000
        call = self.command("pick", due_ms) if batch == 1 else self.command("pick_many", due_ms, batch)
        return [call] * (jobs // batch)

    def picked(self, replies: Sequence[Any]) -> list[Token]:
        """A pick replies id and argument, one of many lists of both."""
        return [id for ids, _ in filter(None, replies) for id in (ids if isinstance(ids, list) else [ids])]

    def finish(self, tokens: Sequence[Token], batch: int) -> list[Command]:
        script = "finish" if batch == 1 else "finish_many"
        return [self.command(script, *part) for part in chunks(tokens, batch)]

    def finished(self, replies: Sequence[Any]) -> int:
        return sum(replies)


@dataclass
class JQ:
    """Jobs with a name of 10 characters and an argument of 200 bytes, in a queue of their own."""

    spec: Callable[[int], Spec] = lambda number: {}
    """What else the job with this number is given."""
    constraints: list[tuple[Spec, Spec]] = field(default_factory=list)
    """A constraint's spec, and whom it matches."""
    argument: Callable[[int], bytes] = lambda number: ARGUMENT
    form: Literal["functions", "scripts"] = "functions"
    checkout: Path | None = None
    """Whose scripts; default: this one's."""
    fill: Callable[[Wire, JQ], None] | None = None
    """Brings in what is there before anything is measured."""
    as_worker: bool = False
    """Picks are as the library's worker makes them: registered, of a list of queues, with a wait and request tokens."""
    worker: str = "worker-1"
    namespace: str = "{jq}"
    numbers: int = 0

    def prepare(self, wire: Wire) -> None:
        wire.call("FLUSHALL")
        wire.call("SCRIPT", "FLUSH")
        bundle = built(self.checkout)
        assert bundle.library is not None
        self.library = bundle.library
        if self.form == "functions":
            wire.call("FUNCTION", "LOAD", "REPLACE", self.library.source)
        self.sha: dict[str, bytes] = {}
        # In a namespace of its own: what is compiled or looked at for the first time is not counted.
        self.namespace = "{warm}"
        self.settle(wire)
        wire.pipelined(self.finish(self.picked(wire.pipelined(self.enqueue(8, 1) + self.pick(8, 1))[8:]), 1))
        self.namespace = "{jq}"
        self.settle(wire)
        if self.fill:
            self.fill(wire, self)

    def settle(self, wire: Wire) -> None:
        """Make the namespace, with the constraints in force."""
        for name in ("setup", "enqueue", "pick", "finish", "tick", "constrain", "hold", "register"):
            if self.form == "scripts" or name not in self.library.functions:
                self.sha[name] = wire.call("SCRIPT", "LOAD", built(self.checkout)[name].source)
        wire.send(self.command("setup"))
        if self.as_worker:
            self.worker = wire.send(self.command("register", {"name": "worker", "queues": [NAME]})).decode()
        for spec, match in self.constraints:
            wire.send(self.command("constrain", spec, match))
        for _ in range(1000):
            next_ms, moved = wire.send(self.command("tick", {}))
            if moved == 0 and not 0 <= next_ms < 100:
                return
        raise RuntimeError("the constraints were not carried out within 1,000 ticks")

    def command(self, name: str, *arguments: Any) -> Command:
        packed = [msgpack.packb(one) if isinstance(one, dict) else one for one in arguments]
        keys = 2, self.namespace, f"{self.namespace}:meta"
        if name in self.sha:
            return pack("EVALSHA", self.sha[name], *keys, *packed)
        return pack("FCALL", f"{self.library.name}_{name}", *keys, *packed)

    def enqueue(self, jobs: int, batch: int) -> list[Command]:
        numbers = range(self.numbers, self.numbers + jobs)
        self.numbers += jobs
        pairs = [({"name": NAME} | self.spec(number), self.argument(number)) for number in numbers]
        return [self.command("enqueue", *(part for pair in some for part in pair)) for some in chunks(pairs, batch)]

    def pick(self, jobs: int, batch: int) -> list[Command]:
        waits = {"wait": {"on": "channel", "ms": 1000}} if self.as_worker else {}
        return [self.command("pick", {"worker": self.worker} | waits | self.wish(batch)) for _ in range(jobs // batch)]

    def wish(self, batch: int) -> Spec:
        count = {"count": batch} if batch > 1 else {}
        if not self.as_worker:
            return {"queues": NAME} | count
        return {"queues": [NAME], "order": "priority", "count": batch, "request": secrets.token_hex(8)}

    def picked(self, replies: Sequence[Any]) -> list[Token]:
        documents = [msgpack.unpackb(packed) for reply in replies for packed in reply[1::2]]
        return [(document["id"], document["token"]) for document in documents]

    def finish(self, tokens: Sequence[Token], batch: int, has_pick: bool = False, **more: Any) -> list[Command]:
        """`has_pick`: each call fetches as many as it finishes; `more`: of the outcomes."""
        calls = []
        for some in chunks(tokens, batch):
            arguments: list[Any] = [{"worker": self.worker} | ({"pick": self.wish(batch)} if has_pick else {})]
            for id, token in some:
                arguments += [{"id": id, "token": token, "type": "success"} | more, NIL]
            calls.append(self.command("finish", *arguments))
        return calls

    def finish_next(self, tokens: Sequence[Token], batch: int) -> list[Command]:
        return self.finish(tokens, batch, has_pick=True)

    def finished(self, replies: Sequence[Any]) -> int:
        return sum(reply.count(b"done") for reply in replies)

    def picked_next(self, replies: Sequence[Any]) -> list[Token]:
        """A pick's part of a finish's reply: next_ms is its first number."""
        return self.picked(
            [reply[next(i for i, part in enumerate(reply) if isinstance(part, int)) :] for reply in replies]
        )
