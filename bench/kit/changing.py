"""How long a single call takes while a change of constraints is carried out over jobs that wait."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgpack

from kit.constrained import Constrained
from kit.contenders import WORKER
from kit.wire import INFO, Command, Wire, cpu_us, pack

INFO_CALLS = 200
MOST_CALLS = 2_000_000
RESET = pack("SLOWLOG", "RESET")


@dataclass
class Longest:
    """The most that one call took, in milliseconds, by what it was: of CPU, and as Redis' clock had it.

    What Redis does beside a script (its cron, sockets) counts as CPU, and what other processes take as time
    by the clock: a script took no more than the lesser of both."""

    info_us: float
    """what asking for the CPU time costs by itself"""
    cpu_ms: dict[str, float] = field(default_factory=dict)
    wall_ms: dict[str, float] = field(default_factory=dict)
    all_cpu_ms: list[float] = field(default_factory=list)

    def send(self, wire: Wire, what: str, command: Command) -> Any:
        _, before, reply, after, entries = wire.pipelined([RESET, INFO, command, INFO, pack("SLOWLOG", "GET", 10)])
        cpu_ms = max(0.0, cpu_us(after) - cpu_us(before) - self.info_us) / 1000
        calls = (entry for entry in entries if entry[3][0] in (b"EVALSHA", b"FCALL"))
        wall_ms = max((entry[2] / 1000 for entry in calls), default=0.0)
        cpu_ms = min(cpu_ms, wall_ms)
        self.cpu_ms[what] = max(self.cpu_ms.get(what, 0.0), cpu_ms)
        self.wall_ms[what] = max(self.wall_ms.get(what, 0.0), wall_ms)
        self.all_cpu_ms.append(cpu_ms)
        return reply


def info_us(wire: Wire) -> float:
    started = wire.cpu_us()
    for _ in range(INFO_CALLS):
        wire.cpu_us()
    return (wire.cpu_us() - started) / (INFO_CALLS + 1)


def carried_out(
    wire: Wire, jq: Constrained, what: str, change: Command, limit_s: float = float("inf")
) -> dict[str, Any]:
    """Make a change and go on calling until it is carried out, or for so long: an enqueue, a pick of
    one or ten jobs and their finish now and then, ticks else. Every call is measured."""
    until = time.monotonic() + limit_s
    wire.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
    longest = Longest(info_us(wire))
    longest.send(wire, what, change)
    tick = jq.command("tick", msgpack.packb({}))
    empty = 0
    for number in range(MOST_CALLS):
        if number % 5 == 0:
            longest.send(wire, "enqueue", jq.enqueue(1, 1)[0])
            count = 10 if number % 50 == 0 else 1
            spec = {"worker": WORKER, "count": count} | jq.wish
            reply = longest.send(wire, f"pick of {count}", jq.command("pick", msgpack.packb(spec)))
            empty += not reply[1:]
            if tokens := jq.picked([reply], 1):
                longest.send(wire, "finish", jq.finish(tokens, len(tokens))[0])
        next_ms, moved = longest.send(wire, "tick", tick)
        if (moved == 0 and not 0 <= next_ms < 100) or time.monotonic() > until:
            break
        if moved == 0 and next_ms:
            time.sleep(next_ms / 1000)
    else:
        raise RuntimeError(f"{what} was not carried out within {MOST_CALLS} ticks")
    wire.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")
    ordered = sorted(longest.all_cpu_ms)
    return {
        "what": what,
        "cpu_ms": longest.cpu_ms,
        "wall_ms": longest.wall_ms,
        "calls": len(ordered),
        "total_cpu_ms": sum(ordered),
        "p50_ms": ordered[len(ordered) // 2],
        "p999_ms": ordered[len(ordered) * 999 // 1000],
        "longest_ms": ordered[-5:],
        "empty_picks": empty,
    }
