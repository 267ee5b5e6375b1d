"""Masters, workers of each kind and a pusher as processes, what befalls them, and what must hold of their jobs."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgpack
import pytest

import journal
from jqmaster import JQ
from jqmaster.errors import Unavailable
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


async def push(site: Site, sent: list[str], stop: asyncio.Event | None = None, pace_s: float = 0.05) -> None:
    """Enqueue in batches, over whichever master answers, every third one over Redis; a batch goes again under
    its token until it is heard. At least `JOBS`, and until `stop`."""
    for at in itertools.count(0, BATCH):
        if at >= JOBS and (stop is None or stop.is_set()):
            return
        for turn in range(1000):
            is_straight = at // BATCH % 3 == 2
            url, namespace = (site.url, NAMESPACE) if is_straight else (site.urls[turn % 2], None)
            jq = JQ(url, namespace=namespace, timeout=3, max_retry=30, retry_base=0.05, retry_cap=0.5)
            jobs = [jq.new_job("flaky", {"number": n, "fails": n % 3, "ms": n % 20}) for n in range(at, at + BATCH)]
            try:
                sent += [job.id for job in await jq.aenqueue_many(jobs, request=f"batch-{at}")]
                break
            except Unavailable:
                await asyncio.sleep(0.05)
        await asyncio.sleep(pace_s)


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
