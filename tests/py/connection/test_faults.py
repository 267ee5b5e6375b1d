"""Real faults at random moments: nothing is lost, and nothing is finished twice."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgpack
import pytest

from jqmaster import JQ, Handle
from jqmaster.demo import journal
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import eventually
from processes import MasterProcess, Process
from servers import RedisServer

NAMESPACE = "{faults}"
JOBS = 240
BATCH = 20
FINAL = ("done", "error")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="jq-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Site:
    """Redis, two masters and three workers as processes, a pusher, and what is done to them."""

    def __init__(self, folder: Path, stack: ExitStack, seed: int, url: str | None = None) -> None:
        """`url`: of a Redis that is there already."""
        self.dice = random.Random(seed)
        self.folder = folder
        self.stack = stack
        if url is None:
            # `always`: what Redis has acknowledged is on disk, so that every job the pusher was told of must
            # be there.
            self.redis = stack.enter_context(RedisServer("--appendonly", "yes", "--appendfsync", "always"))
        self.url = url or self.redis.url
        self.masters = [self._master(0), self._master(0)]
        self.journals: list[Path] = []
        self.workers: dict[str, Process] = {}
        for how in ("push", "pull", "redis"):
            self.start_worker(how)

    @property
    def urls(self) -> list[str]:
        return [master.url for master in self.masters]

    def _master(self, port: int) -> MasterProcess:
        options = ("--redis", self.url, "--namespace", NAMESPACE)
        return self.stack.enter_context(MasterProcess(*options, port=port))

    def start_worker(self, how: str) -> None:
        path = self.folder / f"{len(self.journals)}.journal"
        self.journals.append(path)
        urls = self.url if how == "redis" else ",".join(self.urls)
        started = Process("fault_worker", how, urls, NAMESPACE, str(path), ready="worker ")
        self.workers[how] = self.stack.enter_context(started)

    # -- faults -----------------------------------------------------------------------------------

    def restart_redis(self) -> None:
        """kill -9, and back on the same data."""
        self.redis.kill()
        self.redis.start()

    def flush_scripts(self) -> None:
        """As after a failover: the scripts are gone."""
        with self.redis.client() as client:
            client.script_flush()

    def kill_master(self) -> None:
        """kill -9, and a new one at the same address."""
        index = self.dice.randrange(2)
        port = self.masters[index].port
        self.masters[index].kill()
        self.masters[index] = self._master(port)

    def kill_worker(self) -> None:
        """kill -9, and a new one, which is another worker."""
        how = self.dice.choice(list(self.workers))
        self.workers[how].kill()
        self.start_worker(how)

    def cut_connections(self) -> None:
        """All connections to Redis break; it goes on."""
        with self.redis.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


Fault = Callable[[Site], None]
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
        async with connect(site.url, retries=3) as redis:
            engine = Engine(redis, NAMESPACE)
            await eventually(lambda: _ended(engine), 90)
            documents = await engine.get(*sent)
            for worker in site.workers.values():
                worker.signal()
            for worker in site.workers.values():
                assert await asyncio.to_thread(worker.ends) == 0, worker.text
            assert await engine.audit_all() == []
        assert len(set(sent)) == JOBS
        entries = [entry for path in site.journals for entry in journal.read(path, journal.Entry)]
        check(documents, entries, site)


async def push(site: Site, sent: list[str], stop: asyncio.Event | None = None, pace_s: float = 0.05) -> None:
    """Enqueue in batches, over whichever master answers, every third one over Redis; a batch goes again under
    its token until it is heard. At least `JOBS`, and until `stop`."""
    for at in itertools.count(0, BATCH):
        if at >= JOBS and (stop is None or stop.is_set()):
            return
        for turn in range(1000):
            url = site.url if at // BATCH % 3 == 2 else site.urls[turn % 2]
            jq = JQ(url, namespace=NAMESPACE, timeout=3, max_retry=30, retry_base=0.05, retry_cap=0.5)
            jobs = [jq.call("flaky", {"number": n, "fails": n % 3, "ms": n % 20}) for n in range(at, at + BATCH)]
            try:
                sent += [job.id for job in await jq.aenqueue_many(jobs, request=f"batch-{at}")]
                break
            except Unavailable:
                await asyncio.sleep(0.05)
        await asyncio.sleep(pace_s)


async def _ended(engine: Engine) -> bool:
    try:
        documents = (await engine.queues(["flaky"])).documents
    except Unavailable:
        return False
    return bool(documents and documents[0]["done"] == JOBS)


def check(documents: list[dict[str, object] | None], entries: list[journal.Entry], site: Site) -> None:
    for number, document in enumerate(documents):
        assert document is not None, f"job {number} is lost"
        assert document["status"] == "done", document
        assert msgpack.unpackb(document["result"]) == number  # type: ignore[arg-type]
    finished = Counter(entry.job for entry in entries if entry.state in FINAL)
    assert not [job for job, times in finished.items() if times > 1]
    attempts = Counter((entry.job, entry.attempt) for entry in entries)
    assert max(attempts.values()) == 1
    # Every worker that was not killed wrote down all that it finished.
    unaccounted = len(documents) - len(finished)
    assert unaccounted <= 8 * (len(site.journals) - 3)


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
            await jq.aenqueue_many(jq.call("flaky", {"number": 2, "fails": 0, "ms": 0}) for _ in range(12))
            # Less than the lease, which has 100 seconds.
            await eventually(lambda: _queue(Engine(redis, NAMESPACE), 12), 40)
            await eventually(lambda: _attempt(held, 2), 40)


async def _status(job: Handle[Any], status: str) -> bool:
    return await job.astatus() == status


async def _attempt(job: Handle[Any], attempt: int) -> bool:
    """Or a later one: the dead worker may have been tried once more."""
    return bool((await job.adocument())["attempt"] >= attempt)


async def _queue(engine: Engine, done: int) -> bool:
    return bool((await engine.queues(["flaky"])).documents[0]["done"] == done)
