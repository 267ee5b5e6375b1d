"""How a limit is divided: what each partition should have of it, and what it may be given now.

Arithmetic alone: what is in use, and how sure that is, module ``balance`` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

QUANTUM = 20  # turns for which a partition keeps one of the units of which there are not enough for all
REMEMBERED = 5  # looks; what waits shows in some of them only, since a queue that may start is not counted as waiting


@dataclass
class Place:
    """One partition, under one limit. ``counted``: what it may have in use as far as is known, at most; None when
    nothing is known of it. ``is_open``: whether it can be given another share now."""

    counted: int | None
    share: int = 0
    demand: int = 0
    is_open: bool = False


@dataclass
class Memory:
    """What is remembered of a limit from turn to turn. ``gained``: when each partition last got one of the units of
    which there are not enough, and how often it did. Nothing is wrong when it is lost."""

    gained: dict[int, tuple[int, int]] = field(default_factory=dict)
    waiting: dict[int, list[int]] = field(default_factory=dict)

    def demand(self, place: int, used: int, waiting: int, was_full: bool) -> int:
        """What a partition could use: what it does, and what waits; what waited lately, if it had no room since. One
        that has room now is believed after some looks: its workers may be on their way."""
        seen = self.waiting.setdefault(place, [])
        if not was_full:
            del seen[:2]
        seen.append(waiting)
        del seen[:-REMEMBERED]
        return used + max(seen)


def divide(limit: int, places: Sequence[Place], memory: Memory, turn: int) -> list[int]:
    """What each partition should have: as much as it can use, of those that can use more all the same (max-min).

    Units that are left over then are spread evenly, so that what comes anywhere may start at once. Where there are
    fewer units than partitions that could use one more, they take turns: who had none for longest is next, and who
    has one keeps it for ``QUANTUM`` turns.
    """
    open_ones = [index for index, one in enumerate(places) if one.is_open]
    spare = max(0, limit - sum(one.counted or 0 for one in places if not one.is_open))
    targets = [0] * len(places)
    hungry = sorted(open_ones, key=lambda index: places[index].demand)
    while hungry and places[hungry[0]].demand <= spare // len(hungry):
        index = hungry.pop(0)
        targets[index] = places[index].demand
        spare -= targets[index]
    if hungry:
        level, more = divmod(spare, len(hungry))
        for index in hungry:
            targets[index] = level
        for index in _in_turn(hungry, level, places, memory, turn)[:more]:
            targets[index] += 1
    else:
        for position, index in enumerate(open_ones):
            targets[index] += spare // len(open_ones) + (position < spare % len(open_ones))
    return targets


def _in_turn(hungry: Sequence[int], level: int, places: Sequence[Place], memory: Memory, turn: int) -> list[int]:
    def rank(index: int) -> tuple[bool, int, int]:
        gained, often = memory.gained.get(index, (-QUANTUM, 0))
        keeps = places[index].share > level and turn - gained < QUANTUM
        return not keeps, gained, often

    return sorted(hungry, key=rank)


def grant(limit: int, places: Sequence[Place], targets: Sequence[int], memory: Memory, turn: int) -> list[int]:
    """The share that each partition is told now: lower ones at once, higher ones as far as there is room.

    With what is granted, and each partition counted as the higher of that and what it is counted as now, the sum is
    at most ``limit``, or nothing is raised beyond what is counted. Where nothing is known of one, nothing can be given
    to others, so that all stay as they are.
    """
    known = [one.counted for one in places if one.counted is not None]
    if len(known) < len(places):
        return [one.share for one in places]
    shares = [min(one.share, target) for one, target in zip(places, targets, strict=True)]
    free = limit - sum(known)
    wanted = [index for index, one in enumerate(places) if one.is_open and targets[index] > shares[index]]
    for index in sorted(wanted, key=lambda index: (places[index].counted or 0) - targets[index]):
        counted = places[index].counted or 0
        more = max(0, min(free, targets[index] - counted))
        raised = min(targets[index], counted + more)
        if raised > shares[index]:
            free -= more
            shares[index] = raised
    _note(places, shares, memory, turn)
    return shares


def _note(places: Sequence[Place], shares: Sequence[int], memory: Memory, turn: int) -> None:
    least = min((share for share, one in zip(shares, places, strict=True) if one.demand > share), default=None)
    for index, (share, one) in enumerate(zip(shares, places, strict=True)):
        if least is not None and share > least and share > one.share:
            memory.gained[index] = turn, memory.gained.get(index, (0, 0))[1] + 1
