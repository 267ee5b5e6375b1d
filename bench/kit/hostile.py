"""A namespace with a clock that is set, filled with what makes single calls long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgpack

from kit.changing import info_us
from kit.contenders import NAME, NIL, chunks
from kit.contenders import built as built_for_use
from kit.wire import Command, Wire, pack

START_MS = 1_800_000_000_000
LONG_S = 1_000_000
ALL = 1000
"""The most that a call takes, of whatever it counts."""


@cache
def built() -> Any:
    built_for_use()  # makes the package known
    from jqmaster.bundle import build as luabuild

    return luabuild.build(clock="settable")


def long(text: str, size: int = 200) -> str:
    return text + "x" * (size - len(text))


class Hostile:
    """``call`` sends an operation, ``measured`` as well and notes the µs it took Redis."""

    def __init__(self, wire: Wire, form: str) -> None:
        self.wire = wire
        self.form = form
        wire.call("FLUSHALL")
        self.sha = {name: wire.call("SCRIPT", "LOAD", script.source) for name, script in built().items()}
        library = built().library
        wire.call("FUNCTION", "LOAD", "REPLACE", library.source)
        self.functions = library.functions if form == "functions" else frozenset()
        self.library = library.name
        wire.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.info_us = info_us(wire)
        self.now_ms = START_MS
        self.pass_s(0)
        self.call("setup")
        self.found_us: list[float] = []
        self.replies: list[Any] = []

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
        cpu_us = self.wire.cpu_us() - before_us - self.info_us
        entries = self.wire.call("SLOWLOG", "GET", 10)
        wall_us = max(entry[2] for entry in entries if entry[3][0] in (b"EVALSHA", b"FCALL"))
        self.found_us.append(min(cpu_us, wall_us))
        self.replies.append(reply)
        return reply

    def enqueue(self, specs: Sequence[dict[str, Any]], argument: bytes = NIL) -> list[str]:
        made = []
        for part in chunks(specs, ALL):
            arguments = [item for spec in part for item in (spec, argument)]
            made += [id.decode() for id in self.call("enqueue", *arguments)[::2]]
        return made

    def many(self, count: int, argument: bytes = NIL, **spec: Any) -> list[str]:
        return self.enqueue([{"name": NAME, "timeout": LONG_S} | spec] * count, argument)

    def start(self, count: int, worker: str = "worker", queues: Any = "*") -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        for _ in range(100_000):
            spec = {"worker": worker, "queues": queues, "count": min(ALL, count - len(tokens))}
            reply = self.call("pick", spec)
            documents = [msgpack.unpackb(packed) for packed in reply[1::2]]
            tokens += [(document["id"], document["token"]) for document in documents]
            if len(tokens) == count or (not documents and reply[0] != 0):
                return tokens
        raise RuntimeError("a pick answers 0 for ever")

    def outcomes(self, tokens: Sequence[tuple[str, str]], blob: bytes = NIL, **more: Any) -> Iterator[list[Any]]:
        """The arguments of finishes of ALL jobs each."""
        for part in chunks(tokens, ALL):
            given = [[{"id": id, "token": token, "type": "success"} | more, blob] for id, token in part]
            yield [{"worker": "worker"}, *[item for pair in given for item in pair]]

    def finish(self, tokens: Sequence[tuple[str, str]], blob: bytes = NIL, **more: Any) -> None:
        for arguments in self.outcomes(tokens, blob, **more):
            self.call("finish", *arguments)

    def settle(self) -> None:
        for _ in range(100_000):
            if self.call("tick", {"limit": ALL})[0] != 0:
                return
        raise RuntimeError("the clock's work never ends")
