"""How a limit is divided among partitions: never more than there is, fair, and nobody waits for ever."""

from __future__ import annotations

import random

import pytest

from jqmaster.system.shares import QUANTUM, Memory, Place, divide, grant


def place(used: int = 0, waiting: int = 0, share: int = 0) -> Place:
    return Place(max(used, share), share, used + waiting, True)


def divided(limit: int, *demands: int) -> list[int]:
    return divide(limit, [place(waiting=one) for one in demands], Memory(), 1)


def test_each_gets_what_it_can_use_and_those_that_want_more_the_same() -> None:
    assert divided(100, 10, 500, 20, 500) == [10, 35, 20, 35]
    assert divided(10, 500, 500, 500) == [4, 3, 3]


def test_what_nobody_wants_is_spread() -> None:
    assert divided(100, 0, 0, 0, 0) == [25] * 4
    assert divided(100, 60, 0, 0, 0) == [70, 10, 10, 10]


def test_who_is_not_known_keeps_what_it_may_have() -> None:
    places = [place(waiting=500), Place(40), place(waiting=500)]
    targets = divide(100, places, Memory(), 1)
    assert targets == [30, 0, 30]
    assert grant(100, places, targets, Memory(), 1) == [30, 0, 30]


def test_nothing_moves_while_nothing_is_known_of_one() -> None:
    places = [place(waiting=500), place(share=40), Place(None)]
    assert grant(100, places, divide(100, places, Memory(), 1), Memory(), 1) == [0, 40, 0]


def test_what_runs_beyond_a_lower_share_counts_until_it_has_ended() -> None:
    places = [place(used=80, waiting=100, share=80), place(waiting=100)]
    assert grant(100, places, [50, 50], Memory(), 1) == [50, 20]
    places = [Place(60, 50, 160, True), place(waiting=100, used=20, share=20)]
    assert grant(100, places, [50, 50], Memory(), 2) == [50, 40]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_the_sum_is_never_more(seed: int) -> None:
    """Partitions that use what they may, as they like, and tell so late, or not."""
    chance = random.Random(seed)
    count, limit = chance.randint(2, 8), chance.choice((1, 2, 3, 10, 100))
    memory = Memory()
    shares, used, waiting = [0] * count, [0] * count, [0] * count
    table: list[int | None] = [0] * count
    for turn in range(300):
        places = []
        for index in range(count):
            if chance.random() < 0.1:
                places.append(Place(table[index]))
            else:
                counted = max(shares[index], used[index])
                places.append(Place(counted, shares[index], used[index] + waiting[index], True))
        told = grant(limit, places, divide(limit, places, memory, turn), memory, turn)
        for index, one in enumerate(places):
            table[index] = max(one.counted or 0, told[index]) if one.is_open else one.counted
            if one.is_open and chance.random() < 0.9:
                shares[index] = told[index]
            waiting[index] = chance.choice((waiting[index], 0, chance.randint(0, 2 * limit)))
            used[index] = chance.randint(0, max(shares[index], used[index]))
        assert sum(max(*each) for each in zip(shares, used, strict=True)) <= limit
        assert sum(one or 0 for one in table) <= limit


@pytest.mark.parametrize(("limit", "count"), [(1, 2), (1, 7), (3, 8)])
def test_where_there_are_too_few_for_all_they_take_turns(limit: int, count: int) -> None:
    """Jobs that never cease to come and last a turn: nobody waits longer than all others have theirs, one after the
    other, and for each unit two turns in which it is on its way."""
    memory, shares, last = Memory(), [0] * count, [0] * count
    bound = (QUANTUM + 2) * (count - limit + 1)
    had = [0] * count
    for turn in range(1, 20 * bound):
        places = [place(used=one, waiting=9, share=one) for one in shares]
        shares = grant(limit, places, divide(limit, places, memory, turn), memory, turn)
        for index, share in enumerate(shares):
            if share:
                last[index] = turn
                had[index] += 1
            assert turn - last[index] <= bound, (index, turn)
    assert max(had) < 1.2 * min(had)
    assert sum(had) > 0.9 * limit * 20 * bound
