"""`plainly.within`: what its connections wait for in a loop ends in time. `plainly.Turns`: threads take turns."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from jqmaster.connection.plainly import Turns, left_s, run, within
from jqmaster.connection.stream import Stream, opened
from topologies import until


@pytest.fixture
async def silent() -> AsyncIterator[Stream]:
    """A connection to somebody who says nothing, and does not read."""
    over = asyncio.Event()

    async def nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(nothing, "127.0.0.1", 0, limit=1)
    stream = await opened(server.sockets[0].getsockname()[:2])
    yield stream
    stream.close()
    over.set()
    server.close()


@pytest.mark.parametrize(("outer_s", "inner_s"), [(0.2, 20), (20, 0.2)])
@pytest.mark.parametrize("size", [1, 10_000_000])
async def test_the_narrowest_one_ends_it(silent: Stream, outer_s: float, inner_s: float, size: int) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with within(outer_s), within(inner_s):
            await silent.send(b"x" * size)
            await silent.receive()
    assert 0.15 < time.monotonic() - began < 10


async def test_what_comes_after_it_is_not_bounded(silent: Stream) -> None:
    async with within(0.05):
        with pytest.raises(TimeoutError):
            await silent.receive(0.001)
    assert left_s(5) == 5


def test_a_turn_goes_to_the_thread_that_waits_longest() -> None:
    turns, order = Turns(), []

    async def take(name: str) -> None:
        async with turns:
            order.append(name)

    async def wait_in_vain() -> None:
        async with within(0.05):
            await take("too late")

    def wait(name: str) -> threading.Thread:
        waiting = len(turns._waiting)
        thread = threading.Thread(target=run, args=(take(name),))
        thread.start()
        until(lambda: len(turns._waiting) > waiting)
        return thread

    async def hold() -> list[threading.Thread]:
        async with turns:
            first = wait("first")
            with pytest.raises(TimeoutError):
                run(wait_in_vain())
            return [first, wait("second")]

    threads = run(hold())
    run(take("who had it before"))
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second", "who had it before"]
