"""Jobs' lives over one connection, one call at a time, pipelined or in batches, with few or many running."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.engine import JQ, Floor, Token
from kit.wire import Command, Wire

WINDOW = 32  # that many jobs a worker holds at a time
LEASE_S = 30.0
Meter = Callable[[Callable[[], Any]], float]
"""Runs something and says what it cost."""


def expect(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise RuntimeError(f"{what}: {found} of {wanted} jobs")


def cpu_meter(wire: Wire) -> Meter:
    """Microseconds of Redis' CPU, user and system."""

    def meter(action: Callable[[], Any]) -> float:
        before = wire.cpu_us()
        action()
        return wire.cpu_us() - before

    return meter


@dataclass
class Life:
    wire: Wire
    engine: JQ | Floor
    batch: int = 1
    depth: int = 100
    """Calls under way at once; 1 is one at a time over the connection."""

    def send(self, commands: list[Command]) -> list[Any]:
        return self.wire.one_by_one(commands) if self.depth == 1 else self.wire.pipelined(commands, self.depth)

    def enqueue(self, jobs: int) -> None:
        self.send(self.engine.enqueue(jobs, self.batch))

    def pick(self, jobs: int) -> list[Token]:
        """A pick that costs much ends before it has all: then another follows."""
        tokens: list[Token] = []
        while left := jobs - len(tokens):
            batch = min(left, self.batch)
            some = self.engine.picked(self.send(self.engine.pick(left, batch)))
            expect(min(len(some), 1), 1, "pick")
            tokens += some
        self.picked_at = time.monotonic()
        return tokens

    def finish(self, tokens: list[Token]) -> None:
        expect(self.engine.finished(self.send(self.engine.finish(tokens, self.batch))), len(tokens), "finish")
        self.in_time()

    def in_time(self) -> None:
        if time.monotonic() - self.picked_at > LEASE_S / 2:
            raise RuntimeError("leases may have lapsed, which would be counted: the machine is too busy")

    def next(self, tokens: list[Token], jobs: int) -> list[Token]:
        """Finish so many jobs, each call fetching as many as it finishes; what is held then."""
        assert isinstance(self.engine, JQ)
        held = len(tokens)
        while jobs > 0:
            ending = tokens[:jobs]
            replies = self.send(self.engine.finish_next(ending, self.batch))
            expect(self.engine.finished(replies), len(ending), "finish fetching the next")
            jobs -= len(ending)
            tokens = tokens[len(ending) :] + self.engine.picked_next(replies)
            tokens += self.pick(held - len(tokens))
        return tokens

    def three_calls(self, jobs: int, meter: Meter, running: int = 0) -> float:
        """Enqueue, pick, finish, of one job; with at most so many running at a time, or all."""

        def lives() -> None:
            self.enqueue(jobs)
            for first in range(0, jobs, running or jobs):
                self.finish(self.pick(min(running or jobs, jobs - first)))

        return meter(lives) / jobs

    def with_next(self, jobs: int, meter: Meter) -> float:
        """Enqueue, and finish fetching the next, of one job, while a worker's fill is held."""
        held = self.batch if self.batch > 1 else 1 if self.depth == 1 else WINDOW
        self.enqueue(held)
        tokens = self.pick(held)

        def lives() -> None:
            nonlocal tokens
            self.enqueue(jobs)
            tokens = self.next(tokens, jobs)

        cost = meter(lives) / jobs
        self.finish(tokens)
        return cost
