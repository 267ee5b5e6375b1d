"""Plain calls in threads go on after faults: nothing that they were told is false, and none hangs."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from failovers import BUSY, NAMESPACE, move
from jqmaster import JQ
from jqmaster.errors import Unavailable
from parts import eventually
from servers import RedisServer
from topologies import Node, Proxy, Sentinels, cluster, free_ports, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

THREADS = 4


class Callers:
    """Threads that enqueue and read back all the time, and one that waits for a job to end."""

    def __init__(self, url: str, wait: float = 5.0) -> None:
        self.jq = JQ(url, namespace=NAMESPACE, wait=wait)
        self.made: list[str] = []
        self.slowest_s = 0.0
        self.problems: list[BaseException] = []
        self.ended = ""
        self._last = [0.0] * THREADS
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(THREADS)]
        self._threads.append(threading.Thread(target=self._wait))

    def _call(self, number: int) -> None:
        while not self._stop.wait(0.01):
            began = time.monotonic()
            try:
                handle = self.jq.enqueue("a")
                self.made.append(handle.id)
                assert handle.status() == "queued"
                self._last[number] = time.monotonic()
            except Unavailable:
                pass
            except BaseException as problem:
                self.problems.append(problem)
                return
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def _wait(self) -> None:
        try:
            self.ended = self.awaited.join(timeout=120)
        except BaseException as problem:
            self.problems.append(problem)

    async def __aenter__(self) -> Callers:
        self.awaited = await asyncio.to_thread(self.jq.enqueue, "awaited")
        for thread in self._threads:
            thread.start()
        await self.all_call()
        return self

    async def all_call(self) -> None:
        """Each has called since now."""
        now = time.monotonic()
        await eventually(lambda: self.problems or min(self._last) > now, 5 * BUSY)
        assert self.problems == []

    async def __aexit__(self, *raised: object) -> None:
        try:
            await asyncio.to_thread(self.awaited.cancel)
            await eventually(lambda: self.ended or self.problems, 5 * BUSY)
        finally:
            self._stop.set()
            for thread in self._threads:
                await asyncio.to_thread(thread.join, 10 * BUSY)
        assert (self.problems, self.ended) == ([], "cancelled")
        found = [
            document
            for at in range(0, len(self.made), 1000)
            for document in await asyncio.to_thread(self.jq.operations.get, self.made[at : at + 1000])
        ]
        assert [job_id for job_id, job in zip(self.made, found, strict=True) if job is None] == []
        self.jq.close()


async def go_on(url: str, fault: Callable[[], Awaitable[object]]) -> None:
    async with Callers(url) as callers:
        await fault()
        await callers.all_call()
    # Calls that the fault met, and that waited for one another, came to an end within their bound.
    assert callers.slowest_s < 2 * (5 + 3) * 2


async def test_links_that_fell_silent(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy:

        async def cut() -> None:
            proxy.silence()
            await asyncio.sleep(1)
            proxy.heal()

        await go_on(proxy.url, cut)


async def test_a_pause_is_waited_out(fresh_server: RedisServer) -> None:
    """And no connection is taken for a dead one."""
    jq = JQ(fresh_server.url, namespace=NAMESPACE, wait=30)
    await asyncio.to_thread(jq.enqueue, "a")
    with fresh_server.client() as redis:
        before = redis.info("clients")["connected_clients"], redis.info("stats")["total_connections_received"]
        redis.execute_command("CLIENT", "PAUSE", 3000, "ALL")
    began = time.monotonic()
    await asyncio.to_thread(jq.enqueue, "a")
    assert time.monotonic() - began > 2
    with fresh_server.client() as redis:
        assert redis.info("stats")["total_connections_received"] - before[1] < 10
    jq.close()


async def test_replies_that_get_lost(fresh_server: RedisServer) -> None:
    async with Proxy(fresh_server) as proxy:
        dice = random.Random(7)

        async def lose() -> None:
            proxy.loses = lambda: dice.random() < 0.1
            await eventually(lambda: proxy.lost > 50)
            proxy.loses = lambda: False

        await go_on(proxy.url, lose)


async def test_sentinels_are_followed_to_the_next_primary(pair: list[Node]) -> None:
    with Sentinels(pair[0]) as sentinels:

        async def fail_over() -> None:
            pair[0].do("CLIENT", "PAUSE", 30_000, "WRITE")
            await asyncio.to_thread(until, lambda: pair[0].offset() == pair[1].offset())
            await asyncio.to_thread(sentinels.failover)
            await eventually(pair[1].is_primary)

        await go_on(sentinels.url, fail_over)


async def test_a_slot_that_moves_during_calls_is_followed() -> None:
    with cluster(2) as servers:
        await go_on(servers.url, lambda: move(servers, 0.3))


@pytest.mark.parametrize("kind", ["redis://", "http://", "redis+sentinel://", "redis+cluster://"])
@pytest.mark.parametrize("how", ["nobody listens", "nobody answers"])
def test_a_call_is_bounded_and_names_what_was_tried(kind: str, how: str) -> None:
    with contextlib.ExitStack() as stack:
        if how == "nobody listens":
            [port] = free_ports(1)
        else:
            port = stack.enter_context(_mute())
        jq = JQ(f"{kind}127.0.0.1:{port}" + ("/mymaster" if "sentinel" in kind else ""), wait=1.0)
        began = time.monotonic()
        with pytest.raises(Unavailable, match=str(port)):
            jq.enqueue("a")
        assert time.monotonic() - began < 1.5 * BUSY
        jq.close()


@contextlib.contextmanager
def _mute() -> Iterator[int]:
    """A port where connections are taken, and nothing is said."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_process_ends_at_once_and_silently_though_redis_is_gone(fresh_server: RedisServer) -> None:
    program = f"""
import os, signal, threading, time
from jqmaster import JQ
jq = JQ({fresh_server.url!r})
handle = jq.enqueue("a")
threading.Thread(target=handle.join, daemon=True).start()
time.sleep(0.3)
os.kill({fresh_server.process.pid}, signal.SIGKILL)
print(time.time())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert time.time() - float(ended.stdout) < 1 * BUSY


def test_connections_that_redis_closed_meanwhile_are_not_used_again(fresh_server: RedisServer) -> None:
    with fresh_server.client() as admin, contextlib.closing(JQ(fresh_server.url)) as jq:
        for _ in range(20):
            jq.enqueue("a")
            admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert len(list(jq.jobs())) == 20


async def test_awaited_calls_do_not_use_them_either(fresh_server: RedisServer) -> None:
    jq = JQ(fresh_server.url)
    with fresh_server.client() as admin:
        for _ in range(20):
            await jq.aenqueue("a")
            admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert len([job async for job in jq.ajobs()]) == 20
    jq.close()


def test_what_is_no_redis_is_said_to_be_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(Unavailable, match="Protocol error"):
            JQ(f"redis://127.0.0.1:{listening.getsockname()[1]}").enqueue("a")
