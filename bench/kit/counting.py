"""Instructions per job of each operation of a contender, on a freshly flushed server under callgrind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kit.callgrind import CountedServer, Profile
from kit.contenders import JQ, Contender, Token
from kit.wire import Command, Wire

WINDOW = 32
"""Jobs a worker holds at a time while finish fetches the next."""


def expect(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise RuntimeError(f"{what}: expected {wanted} jobs, found {found}")


Send = Callable[[list[Command]], list[Any]]


def picked_all(jq: Contender, send: Send, commands: list[Command], jobs: int, batch: int) -> list[Token]:
    """Pick by ``commands``, and on until there are ``jobs``: a pick that costs much ends before that."""
    tokens = jq.picked(send(commands), batch)
    while left := jobs - len(tokens):
        count = min(left, batch)
        found = jq.picked(send(jq.pick(count, count)), count)
        if not found:
            raise RuntimeError(f"{jq.name} pick: {left} of {jobs} jobs do not come")
        tokens += found
    return tokens


def drive_next(wire: Wire, jq: JQ, tokens: list[Token], jobs: int, batch: int) -> list[Token]:
    """Finish ``jobs`` jobs, each call fetching as many as it finishes; returns what is held then."""
    left, held = jobs, len(tokens)
    while left > 0:
        calls = jq.finish_next(tokens[:left], batch)
        replies = wire.pipelined(calls)
        finishing = min(len(tokens), left)
        expect(jq.finished(replies), finishing, "jq finish fetching the next")
        left -= finishing
        tokens = tokens[finishing:] + jq.picked_next(replies, batch)
        if missing := held - len(tokens):
            tokens += picked_all(jq, wire.pipelined, [], missing, batch)
    return tokens


class TooSlow(Exception):
    """Leases may have lapsed: what was counted is not only what was meant."""


LEASE_S = 30
TRIES = 5


def operations(server: CountedServer, contender: Contender, batch: int, jobs: int = 1600) -> dict[str, Profile]:
    """Profiles of enqueue, pick and finish, and for JQ of finish fetching the next."""
    for last in [False] * (TRIES - 1) + [True]:
        wire = server.wire()
        try:
            return _freshly(server, wire, contender, batch, jobs)
        except TooSlow:
            if last:
                raise
        finally:
            wire.close()
    raise AssertionError("unreachable")


def _counted(server: CountedServer, action: Callable[[], Any]) -> tuple[Any, Profile]:
    server.zero()
    result = action()
    return result, server.count()


def _in_time(started: float) -> None:
    if time.monotonic() - started > LEASE_S / 2:
        raise TooSlow(f"a step took more than {LEASE_S / 2} s: the machine is too busy, try again later")


def _freshly(server: CountedServer, wire: Wire, contender: Contender, batch: int, jobs: int) -> dict[str, Profile]:
    contender.prepare(wire)
    profiles = life(server, wire, contender, batch, jobs)
    if isinstance(contender, JQ):
        contender.prepare(wire)
        profiles |= life_next(server, wire, contender, batch, jobs)
    return profiles


def life(server: CountedServer, wire: Wire, contender: Contender, batch: int, jobs: int) -> dict[str, Profile]:
    """Enqueue, pick and finish in a namespace that is set up. Raises TooSlow."""
    profiles: dict[str, Profile] = {}
    commands = contender.enqueue(jobs, batch)
    _, profiles["enqueue"] = _counted(server, lambda: wire.pipelined(commands))
    commands = contender.pick(jobs, batch)
    started = time.monotonic()
    tokens, profiles["pick"] = _counted(server, lambda: picked_all(contender, wire.pipelined, commands, jobs, batch))
    _in_time(started)
    commands = contender.finish(tokens, batch)
    replies, profiles["finish"] = _counted(server, lambda: wire.pipelined(commands))
    _in_time(started)
    expect(contender.finished(replies), jobs, f"{contender.name} finish")
    return profiles


def life_next(server: CountedServer, wire: Wire, jq: JQ, batch: int, jobs: int) -> dict[str, Profile]:
    """Finish fetching the next. Raises TooSlow."""
    held = batch if batch > 1 else WINDOW
    wire.pipelined(jq.enqueue(jobs + held, batch))
    tokens = picked_all(jq, wire.pipelined, [], held, batch)
    started = time.monotonic()
    tokens, profile = _counted(server, lambda: drive_next(wire, jq, tokens, jobs, batch))
    _in_time(started)
    expect(len(tokens), held, "jq finish fetching the next")
    return {"finish_next": profile}
