"""Cron expressions are looked at where they are written, as the engine looks at them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from jqmaster.client import cron
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Invalid

WRITTEN = (
    "* * * * *", "@daily", "@DAILY", " 0  3 * * * ", "@midnight", "@reboot", "", "* * * *", "* * * * * *",
    "60 * * * * *",
    "0 0 0 30 2 *", "* * * * * * *",
    "60 * * * *", "59 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 * 13 *", "0 0 * 0 *", "0 0 * * 8",
    "0 0 * * 7", "*/0 * * * *", "*/15 * * * *", "*/59 * * * *", "*/60 * * * *", "5/10 * * * *", "1-5/2 * * * *",
    "5-1 * * * *", "1,2,3 * * * *", "1,,3 * * * *", ",1 * * * *", "1- * * * *", "-1 * * * *", "1-2-3 * * * *",
    "1/2/3 * * * *", "*-5 * * * *", "** * * * *", "0 0 * jan-MAR mon-fri", "0 0 * jan/2 *", "0 0 * foo *",
    "0 0 * * sat-sun", "0 0 * * 0-0", "0 0 * * 5-0", "0 0 30 2 *", "0 0 30 2 1", "0 0 30 2 */2", "0 0 31 4,6 *",
    "0 0 31 4,5 *", "0 0 29 feb *", "001 * * * *", "1.5 * * * *", "é * * * *", "٣ * * * *", "0 0 */31 2 *",
)  # fmt: skip


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


def anything(dice: random.Random) -> str:
    """Like an expression, more or less."""
    field = lambda: "".join(dice.choices("*/-,1205", k=dice.choice((1, 1, 2, 3, 4))))  # noqa: E731
    return " ".join(dice.choice(("*", "*", field(), "1")) for _ in range(dice.choice((4, 5, 5, 5, 6, 7))))


async def test_it_says_what_the_engine_says(engine: Engine) -> None:
    dice = random.Random(3)
    refused = 0
    for text in (*WRITTEN, *(anything(dice) for _ in range(400))):
        try:
            cron.check(text)
            here = True
        except ValueError:
            here = False
        try:
            await engine.schedule("s", {"name": "a"}, cron=text)
            there = True
        except Invalid as error:
            assert error.path == "cron", text
            there = False
        assert here == there, text
        refused += not here
    assert 150 < refused < 400
