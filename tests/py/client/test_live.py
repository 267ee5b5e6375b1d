"""Handles that are followed: states and progress as they come, to the end, whatever is away meanwhile."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from app_support import jq, transport, working
from jqmaster import JQ, Handle, JobStopped, State, checkpoint, current_job, progress
from jqmaster.server.server import ServeOptions, Server
from parts import eventually
from servers import RedisServer

__all__ = ["jq"]

KINDS = pytest.mark.parametrize("kind", ["plain", "async"])


async def followed(handle: Handle[Any], kind: str, got: list[State]) -> list[State]:
    def plain() -> None:
        for state in handle:
            got.append(state)

    if kind == "plain":
        await asyncio.to_thread(plain)
    else:
        async for state in handle:
            got.append(state)
    return got


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@KINDS
async def test_states_and_progress_come_until_the_end(kind: str, jq: JQ, gate: threading.Event) -> None:
    @jq.job(max_retry=1, retry_base=0)
    def works() -> int:
        if current_job.get().attempt == 1:
            raise ValueError("once more")
        progress(0.5, "half")
        gate.wait(60)
        progress(1)
        return 42

    handle = await works.aenqueue()
    got: list[State] = []
    following = asyncio.create_task(followed(handle, kind, got))
    await eventually(lambda: got)
    with working(jq):
        await eventually(lambda: any(state.progress == 0.5 for state in got))
        gate.set()
        await asyncio.wait_for(following, 60)
    assert got[0] == State("queued", 0, None, None) and not got[0].ended
    assert State("running", 2, 0.5, "half") in got
    assert got[-1] == State("done", 2, 1, "half") and got[-1].ended
    assert sum(state.ended for state in got) == 1 and len(got) == len(set(got))


def test_one_handle_is_not_several(jq: JQ) -> None:
    handle: Any = jq.enqueue("nobody")
    with pytest.raises(TypeError, match="several handles"):
        jq.gather(handle)
    with pytest.raises(TypeError, match="a list"):
        jq.enqueue("nobody", depends=handle)


async def test_the_end_is_told_at_once(jq: JQ, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the next look."""
    monkeypatch.setattr(f"jqmaster.client.transport{'' if jq.target.is_redis else '_http'}.LOOK_S", 600)
    handle = await jq.aenqueue("nobody")
    async with asyncio.timeout(60):
        async for state in handle:
            if not state.ended:
                await asyncio.sleep(0.3)  # it is listened to by now
                asyncio.get_running_loop().call_later(0.3, asyncio.ensure_future, handle.acancel())
    assert state.status == "cancelled"


@KINDS
async def test_redis_may_go_away_meanwhile(kind: str, namespace: str) -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        with transport("redis", server.url, namespace) as jq:
            handle = await jq.aenqueue("nobody")
            got: list[State] = []
            following = asyncio.create_task(followed(handle, kind, got))
            await eventually(lambda: got)
            await asyncio.sleep(0.3)
            server.kill()
            await asyncio.sleep(1)
            server.start()
            await handle.acancel()
            await asyncio.wait_for(following, 60)
        assert got[-1].status == "cancelled"


@KINDS
async def test_so_may_the_master(kind: str, redis_url: str, namespace: str) -> None:
    options = ServeOptions(redis_url=redis_url, namespace=namespace, port=0)
    async with Server(options) as second:
        async with Server(options) as first:
            jq = JQ(f"{first.url},{second.url}")
            handle = await jq.aenqueue("nobody")
            got: list[State] = []
            following = asyncio.create_task(followed(handle, kind, got))
            await eventually(lambda: got)
            await asyncio.sleep(0.3)
        await JQ(second.url).handle(handle.id).acancel()
        await asyncio.wait_for(following, 60)
        assert got[-1].status == "cancelled"


@pytest.mark.parametrize("says", ["progress", "checkpoint"])
def test_a_thread_learns_at_what_it_says_that_its_job_was_cancelled(says: str, jq: JQ) -> None:
    begun, ended = threading.Event(), queue.SimpleQueue[BaseException]()

    @jq.job(timeout=1)
    def works() -> None:
        begun.set()
        try:
            while True:
                progress(1) if says == "progress" else checkpoint(None)
                time.sleep(0.02)
        except Exception:
            raise AssertionError("it is no Exception") from None
        except BaseException as error:
            ended.put(error)
            raise

    with working(jq):
        handle = works.enqueue()
        assert begun.wait(60) and handle.cancel()
        stopped = ended.get(timeout=60)
    assert isinstance(stopped, JobStopped) and str(stopped) == "CANCELLED"
