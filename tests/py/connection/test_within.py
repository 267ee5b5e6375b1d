"""`plainly.within` in a loop: as `asyncio.timeout`, for a fraction of what that takes."""

from __future__ import annotations

import asyncio
import time

import pytest

from jqmaster.connection.plainly import within


async def test_what_takes_too_long_ends_whatever_else_is_under_way() -> None:
    async def takes(seconds: float) -> float:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with within(seconds):
                await asyncio.sleep(60)
        return time.monotonic() - began

    wanted = [20, 0.2, 0.4, 0.1]
    tasks = [asyncio.create_task(takes(seconds)) for seconds in wanted]
    for task, seconds in zip(tasks[1:], wanted[1:], strict=True):
        assert seconds - 0.05 <= await task < seconds + 10
    assert not tasks[0].done()
    tasks[0].cancel()


async def test_what_is_in_time_goes_on_undisturbed() -> None:
    async with within(0.05):
        await asyncio.sleep(0)
    await asyncio.sleep(0.2)


async def test_who_is_cancelled_by_others_is_cancelled() -> None:
    async def waits() -> None:
        async with within(20):
            await asyncio.sleep(60)

    task = asyncio.create_task(waits())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_inner_one_of_two_is_told_apart() -> None:
    async with within(20):
        with pytest.raises(TimeoutError):
            async with within(0.05):
                await asyncio.sleep(60)
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with within(0.05), within(20):
            await asyncio.sleep(60)


def test_each_loop_has_its_own() -> None:
    for _ in range(2):
        asyncio.run(test_what_is_in_time_goes_on_undisturbed())
        asyncio.run(test_the_inner_one_of_two_is_told_apart())
