"""Real faults at random moments: nothing is lost, and nothing is finished twice."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import journal
from faults import JOBS, NAMESPACE, Fault, Site, check, folder, push  # noqa: F401
from jqmaster import JQ, Handle
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import audit_all, eventually
from processes import MasterProcess, Process
from servers import RedisServer

pytestmark = pytest.mark.faults

FAULTS: dict[str, list[Fault]] = {
    "redis killed": [Site.restart_redis],
    "scripts flushed": [Site.flush_scripts] * 5,
    "connections cut": [Site.cut_connections] * 5,
    "master killed": [Site.kill_master],
    "worker killed": [Site.kill_worker],
    "all at random": [Site.flush_scripts, Site.kill_worker, Site.restart_redis, Site.kill_master],
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("what", FAULTS)
async def test_nothing_is_lost_and_nothing_finished_twice(what: str, folder: Path) -> None:
    seed = 100 * int(os.environ.get("JQ_FAULT_SEED", "0")) + list(FAULTS).index(what)
    with ExitStack() as stack:
        site = await asyncio.to_thread(Site, folder, stack, seed)
        faults = list(FAULTS[what])
        site.dice.shuffle(faults)
        sent: list[str] = []
        pushing = asyncio.create_task(push(site, sent))
        for fault in faults:
            await asyncio.sleep(site.dice.uniform(0.2, 1.0))  # the moment is what is random
            await asyncio.to_thread(fault, site)
        await pushing
        async with connect(site.url) as redis:
            engine = Engine(redis, NAMESPACE)
            await eventually(lambda: _ended(engine), 90)
            documents = await engine.get(list(sent))
            for worker in site.workers.values():
                worker.signal()
            for worker in site.workers.values():
                assert await asyncio.to_thread(worker.ends) == 0, worker.text
            assert await audit_all(engine) == []
        assert len(set(sent)) == JOBS
        entries = [entry for path in site.journals for entry in journal.read(path)]
        check(documents, entries, site)


@pytest.mark.timeout(120)
async def test_a_killed_workers_jobs_go_to_others_soon(folder: Path) -> None:
    """A push worker that is killed is found out by the next delivery, long before its leases run out."""
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer())
        master = stack.enter_context(MasterProcess("--redis", server.url, "--namespace", NAMESPACE))
        first = stack.enter_context(
            Process("fault_worker", "push", master.url, NAMESPACE, str(folder / "1"), ready="worker ")
        )
        jq = JQ(master.url, timeout=100)
        async with connect(server.url) as redis:
            held = await jq.aenqueue("flaky", {"number": 1, "fails": 0, "ms": 60000})
            await eventually(lambda: _status(held, "running"))
            first.kill()
            stack.enter_context(
                Process("fault_worker", "push", master.url, NAMESPACE, str(folder / "2"), ready="worker ")
            )
            await jq.aenqueue_many(jq.new_job("flaky", {"number": 2, "fails": 0, "ms": 0}) for _ in range(12))
            # Less than the lease, which has 100 seconds.
            await eventually(lambda: _queue(Engine(redis, NAMESPACE), 12), 40)
            await eventually(lambda: _attempt(held, 2), 40)


async def _ended(engine: Engine) -> bool:
    try:
        documents = (await engine.queues(["flaky"])).documents
    except Unavailable:
        return False
    return bool(documents and documents[0]["done"] == JOBS)


async def _status(job: Handle[Any], status: str) -> bool:
    return await job.astatus() == status


async def _attempt(job: Handle[Any], attempt: int) -> bool:
    """Or a later one: the dead worker may have been tried once more."""
    return bool((await job.adocument())["attempt"] >= attempt)


async def _queue(engine: Engine, done: int) -> bool:
    return bool((await engine.queues(["flaky"])).documents[0]["done"] == done)
