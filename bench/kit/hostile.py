"""A namespace with a clock that is set, to be filled with what makes single calls long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
from kit.engine import NAME, NIL, built, chunks
from kit.wire import Command, Wire, pack

ALL = 1000
"""The most that a call takes, of whatever it counts."""
CALLS = 5
MANY = CALLS * ALL
LONG_S = 1_000_000
ERROR = msgpack.packb("e" * 10_000)
FAILURE = {"type": "failure", "should_retry": False, "message": "m" * 1000}


def long(text: str, size: int = 200) -> str:
    return text + "x" * (size - len(text))


TAGS = [long(f"tag{number}") for number in range(32)]


class Hostile:
    """``call`` sends an operation, ``measured`` as well, and notes the ms it took Redis."""

    def __init__(self, wire: Wire, form: str) -> None:
        self.wire = wire
        wire.call("FLUSHALL")
        bundle = built(clock="settable")
        assert bundle.library is not None
        self.sha = {name: wire.call("SCRIPT", "LOAD", script.source) for name, script in bundle.items()}
        wire.call("FUNCTION", "LOAD", "REPLACE", bundle.library.source)
        self.functions = bundle.library.functions if form == "functions" else frozenset()
        self.library = bundle.library.name
        wire.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.now_ms = 1_800_000_000_000
        self.pass_s(0)
        self.call("setup")
        self.took_ms: list[float] = []

    def pass_s(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        self.wire.call("SET", "{jq}:clock", self.now_ms)

    def command(self, operation: str, *arguments: Any) -> Command:
        packed = [msgpack.packb(part) if isinstance(part, dict) else part for part in arguments]
        if operation in self.functions:
            return pack("FCALL", f"{self.library}_{operation}", 2, "{jq}", "{jq}:meta", *packed)
        return pack("EVALSHA", self.sha[operation], 2, "{jq}", "{jq}:meta", *packed)

    def call(self, operation: str, *arguments: Any) -> Any:
        return self.wire.send(self.command(operation, *arguments))

    def measured(self, operation: str, *arguments: Any) -> Any:
        """The lesser of CPU time and of what Redis' clock had: others' work is in one of them at most."""
        command = self.command(operation, *arguments)
        self.wire.call("SLOWLOG", "RESET")
        before_us = self.wire.cpu_us()
        reply = self.wire.send(command)
        cpu_us = self.wire.cpu_us() - before_us
        entries = self.wire.call("SLOWLOG", "GET", 10)
        wall_us = max(entry[2] for entry in entries if entry[3][0] in (b"EVALSHA", b"FCALL"))
        self.took_ms.append(min(cpu_us, wall_us) / 1000)
        return reply

    def repeated(self, operation: str, **spec: Any) -> None:
        """Measured some times, page by page where it replies a cursor."""
        cursor: dict[str, str] = {}
        for _ in range(CALLS):
            reply = self.measured(operation, {"count": ALL} | spec | cursor)
            if reply and isinstance(reply[0], bytes):
                cursor = {"cursor": reply[0].decode()}

    def ticks(self, after_s: float = 0) -> None:
        self.pass_s(after_s)
        for _ in range(CALLS):
            self.measured("tick", {"limit": ALL})

    def picks(self, queues: Any = NAME, count: int = ALL) -> None:
        for _ in range(CALLS):
            self.measured("pick", {"worker": "worker", "queues": queues, "count": count})

    def enqueue(self, specs: Sequence[dict[str, Any]], arguments: Sequence[bytes] | bytes = NIL) -> list[str]:
        """`arguments`: one for each, or the same for all. Leases are long, unless a spec says otherwise."""
        each = [arguments] * len(specs) if isinstance(arguments, bytes) else arguments
        ids: list[str] = []
        for part in chunks(list(zip(specs, each, strict=True)), ALL):
            pairs = [({"name": NAME, "timeout": LONG_S} | spec, argument) for spec, argument in part]
            ids += [id.decode() for id in self.call("enqueue", *(item for pair in pairs for item in pair))[::2]]
        return ids

    def many(self, count: int = MANY, argument: bytes = NIL, **spec: Any) -> list[str]:
        return self.enqueue([spec] * count, argument)

    def in_queues(self, count: int = MANY, **spec: Any) -> list[str]:
        """Each in a queue of its own."""
        return self.enqueue([{"queue": long(f"q{number}")} | spec for number in range(count)])

    def with_keys(self, count: int = MANY, **spec: Any) -> list[str]:
        """Each with an argument of its own."""
        return self.enqueue([spec] * count, [msgpack.packb(number) for number in range(count)])

    def start(self, count: int = MANY, worker: str = "worker", queues: Any = "*") -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        for _ in range(100_000):
            spec = {"worker": worker, "queues": queues, "count": min(ALL, count - len(tokens))}
            reply = self.call("pick", spec)
            documents = [msgpack.unpackb(packed) for packed in reply[1::2]]
            tokens += [(document["id"], document["token"]) for document in documents]
            if len(tokens) == count or (not documents and reply[0] != 0):
                return tokens
        raise RuntimeError("a pick answers 0 for ever")

    def finish(self, count: int = MANY, result: bytes = NIL, **outcome: Any) -> None:
        """Start so many, and finish them."""
        for part in chunks(self.start(count), ALL):
            some = [({"id": id, "token": token, "type": "success"} | outcome, result) for id, token in part]
            self.call("finish", {"worker": "worker"}, *(item for pair in some for item in pair))

    def limit(self, count: int = 1, **spec: Any) -> None:
        """So many constraints in force, each with a key for each argument."""
        for number in range(count):
            wish = {"id": f"limit{number}", "concurrency": 1_000_000, "by": "argument"} | spec
            self.call("constrain", wish, {"name": NAME})
        self.settle()

    def settle(self) -> None:
        for _ in range(100_000):
            if self.call("tick", {"limit": ALL})[0] != 0:
                return
        raise RuntimeError("the clock's work never ends")


def numbered(**spec: Any) -> Iterator[dict[str, Any]]:
    """The spec for each of many; `{}` in texts is the number."""
    for number in range(MANY):
        yield {name: value.format(number) if isinstance(value, str) else value for name, value in spec.items()}
