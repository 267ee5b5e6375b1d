"""Those who ask at the same time share calls."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from jqmaster.connection.together import MAX_BYTES, Together
from jqmaster.errors import Invalid, Unavailable


class Asked:
    """Answers each pair of arguments with the same in capitals; refuses calls with "bad", and is away for "away"."""

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []
        self.came = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def raw(self, operation: str, *arguments: bytes) -> list[bytes]:
        assert operation == "enqueue"
        self.calls.append(list(arguments[::2]))
        self.came.set()
        await asyncio.sleep(0)
        await self.goes_on.wait()
        if b"bad" in arguments:
            raise Invalid("bad")
        if b"away" in arguments:
            raise Unavailable("away")
        return [argument.upper() for argument in arguments]


async def ask(asked: Asked, *names: bytes) -> list[Any]:
    together = Together(partial(asked.raw, "enqueue"))
    return await asyncio.gather(*(together.get(name, b"x") for name in names), return_exceptions=True)


async def test_what_comes_while_a_call_is_under_way_goes_with_the_next() -> None:
    asked = Asked()
    names = [b"n%d" % number for number in range(150)]
    assert await ask(asked, *names) == [[name.upper(), b"X"] for name in names]
    assert [len(call) for call in asked.calls] == [1, 100, 49]


async def test_a_call_is_small_in_bytes() -> None:
    asked = Asked()
    await ask(asked, b"first", *[b"l" * (MAX_BYTES // 3)] * 4)
    assert [len(call) for call in asked.calls] == [1, 2, 2]


async def test_a_refusal_concerns_one() -> None:
    answers = await ask(Asked(), b"a", b"b", b"bad", b"c")
    assert [answers[0], answers[1], answers[3]] == [[b"A", b"X"], [b"B", b"X"], [b"C", b"X"]]
    assert isinstance(answers[2], Invalid)


async def test_when_the_other_side_is_away_nobody_asks_again() -> None:
    asked = Asked()
    answers = await ask(asked, b"a", b"b", b"away")
    assert answers[0] == [b"A", b"X"] and [type(answer) for answer in answers[1:]] == [Unavailable, Unavailable]
    assert len(asked.calls) == 2


async def test_who_has_waited_long_for_one_that_is_away_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jqmaster.connection.together.LATE_S", 0)
    for names, calls in ((b"away",), 1), ((b"a", b"away"), 2):
        asked = Asked()
        answers = await ask(asked, *names, *[b"n"] * 150)
        assert {type(answer) for answer in answers[len(names) - 1 :]} == {Unavailable} and len(asked.calls) == calls


async def test_who_gives_up_is_not_asked_for() -> None:
    asked = Asked()
    asked.goes_on.clear()
    together = Together(partial(asked.raw, "enqueue"))
    first, second, third = (asyncio.create_task(together.get(name, b"x")) for name in (b"1", b"2", b"3"))
    await asked.came.wait()
    second.cancel()
    await asyncio.sleep(0)
    asked.goes_on.set()
    assert [(await first)[0], (await third)[0]] == [b"1", b"3"]
    with pytest.raises(asyncio.CancelledError):
        await second
    assert asked.calls == [[b"1"], [b"3"]]
