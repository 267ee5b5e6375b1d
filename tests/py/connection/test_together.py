"""Those who ask at the same time share calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from jqmaster.connection.together import Together
from jqmaster.errors import Invalid, JQError, NotFound, Unavailable


class Asked:
    """Doubles numbers; knows no 13, refuses calls with -1, and is away for 999."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.came = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self, keys: Sequence[int]) -> list[int | JQError]:
        self.calls.append(list(keys))
        self.came.set()
        await asyncio.sleep(0)
        await self.goes_on.wait()
        if -1 in keys:
            raise Invalid("negative")
        if 999 in keys:
            raise Unavailable("away")
        return [NotFound("13") if key == 13 else 2 * key for key in keys]


async def test_what_comes_while_a_call_is_under_way_goes_with_the_next() -> None:
    asked = Asked()
    together = Together(asked)
    keys = range(1000, 1300)
    assert await asyncio.gather(*map(together.get, keys)) == [2 * key for key in keys]
    assert [len(keys) for keys in asked.calls] == [1, 200, 99]
    assert await together.get(7) == 14


async def test_a_refusal_concerns_one() -> None:
    asked = Asked()
    together = Together(asked)
    answers = await asyncio.gather(*map(together.get, (1, 13, -1, 2)), return_exceptions=True)
    assert (answers[0], answers[3]) == (2, 4)
    assert isinstance(answers[1], NotFound) and isinstance(answers[2], Invalid)


async def test_when_the_other_side_is_away_nobody_asks_again() -> None:
    asked = Asked()
    together = Together(asked)
    answers = await asyncio.gather(*map(together.get, (1, 2, 999)), return_exceptions=True)
    assert answers[0] == 2 and [type(answer) for answer in answers[1:]] == [Unavailable, Unavailable]
    assert len(asked.calls) == 2


async def test_who_gives_up_is_not_asked_for() -> None:
    asked = Asked()
    asked.goes_on.clear()
    together = Together(asked)
    tasks = [asyncio.create_task(together.get(key)) for key in (1, 2, 3)]
    await asked.came.wait()
    late = [asyncio.create_task(together.get(key)) for key in (4, 5)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    late[0].cancel()
    await asyncio.sleep(0)
    asked.goes_on.set()
    assert [await tasks[0], await tasks[2], await late[1]] == [2, 6, 10]
    assert asked.calls == [[1], [3, 5]]
    with pytest.raises(asyncio.CancelledError):
        await late[0]
