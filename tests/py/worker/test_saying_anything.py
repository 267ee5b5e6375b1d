"""Whatever a job says of itself, its worker goes on renewing leases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bare import worker_of
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.server.server import Server
from jqmaster.worker.notes import checkpoint, current_notebook, progress
from jqmaster.worker.sources import RedisSource
from parts import enqueue, until
from surface_support import own, server
from test_worker import working

__all__ = ["own", "server"]


SAID = {
    "zero division": float("nan"), "infinite": float("inf"), "text": "50%", "bytes": b"5", "none": None,
    "list": [1], "complex": 1j, "huge": 10**400, "beyond": 1e301,
}  # fmt: skip


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_what_cannot_be_said_is_refused_where_it_is_said(way: str, server: Server, own: Engine) -> None:
    async def says(what: str) -> None:
        progress(SAID[what])

    async def message(_argument: None) -> None:
        progress(1, 5)  # type: ignore[arg-type]

    async def keeps(_argument: None) -> None:
        checkpoint(object())

    async with working(way, server, {"says": says, "message": message, "keeps": keeps}, concurrency=4):
        for what in SAID:
            job = await enqueue(own, "says", what, max_retry=0)
            assert "progress: " in (await until(own, job, "error"))["message"]
        job = await enqueue(own, "message", max_retry=0)
        assert "message: expected text, got int" in (await until(own, job, "error"))["message"]
        job = await enqueue(own, "keeps", max_retry=0)
        assert (await until(own, job, "error"))["message"].startswith("TypeError")


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_a_note_that_redis_refuses_is_dropped_and_costs_no_lease(
    way: str, server: Server, own: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async def odd(_argument: None) -> None:
        notebook = current_notebook.get(None)
        assert notebook is not None
        notebook.write(Note(progress=float("nan")))  # as `progress` would refuse it
        await asyncio.sleep(3)

    async def other(_argument: None) -> None:
        progress(0.5)
        await asyncio.sleep(3)

    async with working(way, server, {"odd": odd, "other": other}):
        jobs = [await enqueue(own, name, timeout=1, max_retry=0) for name in ("odd", "other", "other")]
        for job in jobs:
            await until(own, job, "done")
        assert f"job {jobs[0]} (odd): progress or checkpoint refused and dropped" in caplog.text
        for job in jobs[1:]:
            assert (await own.get([job]))[0]["progress"] == 0.5  # type: ignore[index]


@pytest.mark.parametrize("wrong", [RuntimeError("nobody foresaw it"), asyncio.CancelledError(), TypeError("nor this")])
async def test_heartbeats_and_reports_go_on_after_an_error_that_nobody_foresaw(
    wrong: BaseException, own: Engine, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Source(RedisSource):
        failed: frozenset[str] = frozenset()

        def once(self, what: str) -> None:
            if what not in self.failed:
                self.failed |= {what}
                raise wrong

        async def heartbeat(self, *arguments: Any) -> Beat:
            self.once("heartbeat")
            return await super().heartbeat(*arguments)

        async def fetch(self, count: int) -> list[Job]:
            self.once("fetch")
            return await super().fetch(count)

        async def listen(self, told: Callable[[], None]) -> None:
            self.once("listen")
            await super().listen(told)

    async def nap(_argument: None) -> None:
        await asyncio.sleep(3)

    stop = asyncio.Event()
    source = Source(redis_url, own.namespace, ["nap"])
    running = asyncio.create_task(worker_of({"nap": nap}, source).run(stop))
    job = await enqueue(own, "nap", timeout=1, max_retry=0)
    await until(own, job, "done")
    assert source.failed == {"heartbeat", "fetch", "listen"}
    assert caplog.text.count("restarting it") >= 2
    stop.set()
    await running
    await source.stop()
