"""One round of a contender in each mode: singly, pipelined, in batches of 100."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.contenders import JQ, Contender
from kit.counting import WINDOW, drive_next, expect, picked_all
from kit.timing import measured, total
from kit.wire import Command, Wire


@dataclass(frozen=True)
class Mode:
    name: str
    batch: int
    depth: int
    """commands under way at once; 1 is one at a time over the connection"""

    def send(self, wire: Wire, commands: list[Command]) -> list[Any]:
        return wire.one_by_one(commands) if self.depth == 1 else wire.pipelined(commands, self.depth)


SINGLY = Mode("singly", 1, 1)
PIPELINED = Mode("pipelined", 1, 100)
BATCHES = Mode("batches of 100", 100, 1)
MODES = (SINGLY, PIPELINED, BATCHES)


def round_of(wire: Wire, contender: Contender, mode: Mode, jobs: int) -> dict[str, Any]:
    """Enqueue, pick and finish ``jobs`` jobs; for JQ once more with finish fetching the next."""
    batch = mode.batch
    found: dict[str, Any] = {}
    commands = contender.enqueue(jobs, batch)
    _, found["enqueue"] = measured(wire, jobs, lambda: mode.send(wire, commands))
    commands = contender.pick(jobs, batch)
    tokens, found["pick"] = measured(
        wire, jobs, lambda: picked_all(contender, lambda some: mode.send(wire, some), commands, jobs, batch)
    )
    commands = contender.finish(tokens, batch)
    replies, found["finish"] = measured(wire, jobs, lambda: mode.send(wire, commands))
    expect(contender.finished(replies), jobs, f"{contender.name} finish")
    found["life"] = total([found["enqueue"], found["pick"], found["finish"]])
    if isinstance(contender, JQ):
        found |= round_next(wire, contender, mode, jobs)
        found["life_next"] = total([found["enqueue"], found["finish_next"]])
    return found


def round_next(wire: Wire, jq: JQ, mode: Mode, jobs: int) -> dict[str, Any]:
    held = mode.batch if mode.batch > 1 else 1 if mode.depth == 1 else WINDOW
    wire.pipelined(jq.enqueue(jobs + held, mode.batch))
    tokens = picked_all(jq, wire.pipelined, [], held, mode.batch)
    tokens, cost = measured(wire, jobs, lambda: drive_next(wire, jq, tokens, jobs, mode.batch))
    wire.pipelined(jq.finish(tokens, mode.batch))
    return {"finish_next": cost}
