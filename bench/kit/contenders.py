"""The floor and JQ behind one face: commands for enqueue, pick, finish, and finish fetching the next.

A contender builds commands and reads replies; it never sends the measured commands itself, so that every
mode (singly, pipelined, in batches, under callgrind) measures exactly the same calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Protocol

import msgpack

from kit.wire import Command, Wire, pack

BENCH = Path(__file__).resolve().parent.parent
ARGUMENT = msgpack.packb(b"a" * 198)
"""200 bytes that are one complete MessagePack value (two bytes of head, 198 of content)."""
assert len(ARGUMENT) == 200
WARM = "{warm}"
"""The namespace of what only warms up."""
NAME = "mail.send1"
NIL = b"\xc0"
WORKER = "worker-1"

Token = Any


class Contender(Protocol):
    """``batch`` is the number of jobs per call."""

    name: str
    sha: dict[str, Any]

    def prepare(self, wire: Wire) -> None: ...
    def enqueue(self, jobs: int, batch: int) -> list[Command]: ...
    def pick(self, jobs: int, batch: int) -> list[Command]: ...
    def picked(self, replies: Sequence[Any], batch: int) -> list[Token]: ...
    def finish(self, tokens: Sequence[Token], batch: int) -> list[Command]: ...
    def finished(self, replies: Sequence[Any]) -> int: ...


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


@cache
def built() -> Any:
    """The engine, built once: one run measures one engine, also while somebody edits it."""
    sys.path.insert(0, str(BENCH.parent / "python"))
    from jqmaster.bundle import build as luabuild

    return luabuild.build()


def built_scripts() -> dict[str, str]:
    return {name: script.source for name, script in built().items()}


def engine_digest() -> str:
    """Tells engines apart in results."""
    sources = [*sorted(built_scripts().items()), ("library", built().library.source)]
    text = "\0".join(f"{name}\0{source}" for name, source in sources)
    return sha1(text.encode()).hexdigest()[:10]


class Floor:
    """INCR+SET+ZADD, ZPOPMIN+GET+ZADD, ZREM+DEL: the least a queue with leases can do."""

    name = "floor"

    def prepare(self, wire: Wire) -> None:
        wire.call("FLUSHALL")
        wire.call("SCRIPT", "FLUSH")
        self.sha = {
            path.stem: wire.call("SCRIPT", "LOAD", path.read_bytes()) for path in (BENCH / "floor").glob("*.lua")
        }

    def _command(self, script: str, *arguments: Any) -> Command:
        return pack("EVALSHA", self.sha[script], 2, "{fl}", "{fl}:meta", *arguments)

    def enqueue(self, jobs: int, batch: int) -> list[Command]:
        if batch == 1:
            return [self._command("enqueue", ARGUMENT)] * jobs
        return [self._command("enqueue_many", *[ARGUMENT] * batch)] * (jobs // batch)

    def pick(self, jobs: int, batch: int) -> list[Command]:
        due_ms = 1_700_000_030_000
        if batch == 1:
            return [self._command("pick", due_ms)] * jobs
        return [self._command("pick_many", due_ms, batch)] * (jobs // batch)

    def picked(self, replies: Sequence[Any], batch: int) -> list[Token]:
        found = replies if batch == 1 else [(job_id,) for ids, _ in replies for job_id in ids]
        return [job[0] for job in found if job]

    def finish(self, tokens: Sequence[Token], batch: int) -> list[Command]:
        if batch == 1:
            return [self._command("finish", token) for token in tokens]
        return [self._command("finish_many", *part) for part in chunks(tokens, batch)]

    def finished(self, replies: Sequence[Any]) -> int:
        return sum(replies)


def _behind_answers(reply: Sequence[Any]) -> Sequence[Any]:
    """A pick's part of a finish's reply: next_ms is its first number."""
    return reply[next(i for i, part in enumerate(reply) if isinstance(part, int)) :]


USED = (
    "config", "constrain", "enqueue", "finish", "hold", "pick", "queue", "setup", "tick", "unconstrain",
)  # fmt: skip
"""Operations that the bench calls."""


class JQ:
    """The engine under ``scripts/``, built by ``jqmaster.bundle.build``.

    ``settings`` go to ``config``; ``spread`` is the number of queues that jobs are put into in turn;
    ``form``: functions, or scripts.
    """

    def __init__(
        self,
        settings: dict[str, Any] | None = None,
        queues: Any = NAME,
        spread: int = 0,
        form: str = "functions",
    ) -> None:
        self.settings = settings or {}
        self.wish: dict[str, Any] = {"queues": queues}
        self.spread = spread
        self.form = form
        self.namespace = "{jq}"
        self.name = "jq" + "".join(f" {key}={value}" for key, value in self.settings.items())

    def prepare(self, wire: Wire) -> None:
        wire.call("FLUSHALL")
        wire.call("SCRIPT", "FLUSH")
        self.source = built_scripts()
        self.functions: dict[str, str] = {}
        if self.form == "functions":
            library = built().library
            wire.call("FUNCTION", "LOAD", "REPLACE", library.source)
            self.functions = {name: f"{library.name}_{name}" for name in library.functions}
        # Not all: under callgrind that takes longer than what is counted.
        scripts = [name for name in USED if name not in self.functions]
        self.sha = {name: wire.call("SCRIPT", "LOAD", self.source[name]) for name in scripts}
        if self.functions:
            self.warm_up(wire)
        wire.send(self.command("setup"))
        if self.settings:
            wire.send(self.command("config", msgpack.packb({"set": self.settings})))

    def warm_up(self, wire: Wire) -> None:
        """A few lives in another namespace: a library compiles its modules when they are first needed."""
        namespace, self.namespace = self.namespace, WARM
        wire.send(self.command("setup"))
        wire.pipelined(self.enqueue(8, 1))
        wire.pipelined(self.finish(self.picked(wire.pipelined(self.pick(8, 1)), 1), 1))
        self.namespace = namespace

    def command(self, script: str, *arguments: Any) -> Command:
        keys = 2, self.namespace, f"{self.namespace}:meta"
        return pack(*self.called(script), *keys, *arguments)

    def called(self, script: str) -> tuple[str, str]:
        """The command, and what it names."""
        if script in self.functions:
            return "FCALL", self.functions[script]
        return "EVALSHA", self.sha[script].decode()

    def enqueue(self, jobs: int, batch: int) -> list[Command]:
        if not self.spread:
            spec = msgpack.packb({"name": NAME})
            return [self.command("enqueue", *[spec, ARGUMENT] * batch)] * (jobs // batch)
        specs = [msgpack.packb({"name": NAME, "queue": f"queue{i % self.spread:05}"}) for i in range(jobs)]
        pairs = [(spec, ARGUMENT) for spec in specs]
        return [self.command("enqueue", *[item for pair in part for item in pair]) for part in chunks(pairs, batch)]

    def pick(self, jobs: int, batch: int) -> list[Command]:
        spec = {"worker": WORKER, **self.wish}
        if batch > 1:
            spec["count"] = batch
        return [self.command("pick", msgpack.packb(spec))] * (jobs // batch)

    def picked(self, replies: Sequence[Any], batch: int) -> list[Token]:
        documents = [msgpack.unpackb(packed) for reply in replies for packed in reply[1::2]]
        return [(document["id"], document["token"]) for document in documents]

    def _finish(self, spec: dict[str, Any], tokens: Sequence[Token]) -> Command:
        arguments = [msgpack.packb(spec)]
        for job_id, token in tokens:
            arguments += [msgpack.packb({"id": job_id, "token": token, "type": "success"}), NIL]
        return self.command("finish", *arguments)

    def finish(self, tokens: Sequence[Token], batch: int) -> list[Command]:
        return [self._finish({"worker": WORKER}, part) for part in chunks(tokens, batch)]

    def finished(self, replies: Sequence[Any]) -> int:
        return sum(reply.count(b"done") for reply in replies)

    def finish_next(self, tokens: Sequence[Token], batch: int) -> list[Command]:
        pick = dict(self.wish)
        if batch > 1:
            pick["count"] = batch
        return [self._finish({"worker": WORKER, "pick": pick}, part) for part in chunks(tokens, batch)]

    def picked_next(self, replies: Sequence[Any], batch: int) -> list[Token]:
        return self.picked([_behind_answers(reply) for reply in replies], batch)
