"""Long polls: a pick that waits until there is work, without a polling loop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import redis.asyncio as redis_asyncio

from jqmaster.connection import plainly
from jqmaster.connection.wake import WINDOW_MS, Channel, backoff_s
from jqmaster.engine import replies
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.errors import JQError, Unavailable

TAKES_BACK_S = 30.0
NOTHING: list[Any] = [-1]
"""A pick's reply that holds no job."""


AGAIN = (0, 1)
"""``next_ms`` of a reply that says to pick again at once: without, and with ``wait``."""


def channel_of(queues: object, without: object = None) -> str:
    """The channel of all who want the same, in any process and language (protocol.md, Sleeping)."""
    lists = [[queues] if isinstance(queues, str) else queues, without]
    texts = ["\n".join(sorted(map(str, names))) for names in lists if isinstance(names, list | tuple)]
    return "q-" + hashlib.sha1("\n\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def note_s(next_ms: int) -> float:
    """How long the engine's note of a sleeper is good for, less a little: it ends a second after `next_ms`.

    At `next_ms` itself the channel's timer wakes one sleeper, not all; the others renew their notes one by one.
    """
    return WINDOW_MS / 1000 if next_ms < 0 else min(WINDOW_MS, next_ms) / 1000 + random.uniform(0.2, 0.8)


class Waiting:
    """The long polls of one process: one `Channel` for each distinct wish, made when somebody waits on it."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis) -> None:
        self._engine = engine
        self._redis = redis
        self._channels: dict[str, Channel] = {}
        self._users: dict[str, int] = {}
        self._draining = False
        self._background: set[asyncio.Task[Any]] = set()

    async def pick(self, spec: Mapping[str, Any], timeout_s: float) -> list[Any]:
        """`pick` with `spec` (without `wait`), waiting up to `timeout_s` for a job. The reply is `pick`'s
        own: `[next_ms, doc, argument, ...]`, with no job when the time is up or the master stops.

        Raises JQError for a bad spec, and Unavailable when even the first look fails. Safe to cancel: jobs
        that were picked for a caller who has gone are given back.
        """
        if self._draining:
            return list(NOTHING)
        deadline = time.monotonic() + timeout_s
        if spec.get("request") is not None:
            return await self._pick(dict(spec), timeout_s, deadline, is_own=False)
        asked = {**spec, "request": new_request()}
        try:
            return await self._pick(asked, timeout_s, deadline, is_own=True)
        except Unavailable:
            self.abandon(asked)
            raise

    async def take_back(self, spec: Mapping[str, Any]) -> None:
        """Repeat a pick whose answer was lost, until there is one, and give its jobs back. Errors are swallowed."""
        failures = 0
        with contextlib.suppress(JQError, TimeoutError):
            async with asyncio.timeout(TAKES_BACK_S):
                while True:
                    try:
                        reply = await self._engine.raw("pick", pack(spec))
                        break
                    except Unavailable:
                        await asyncio.sleep(backoff_s(failures))
                        failures += 1
                await self.give_back(str(spec.get("worker")), reply)

    def abandon(self, spec: Mapping[str, Any]) -> None:
        """Take back what a pick brought whose answer was lost, and that nobody will repeat."""
        self._spawn(self.take_back(spec))

    async def give_back(self, worker: str, reply: list[Any]) -> None:
        """Release the jobs of a pick's reply that its client will never see. Errors are swallowed: the leases lapse."""
        jobs = [job.held for job in replies.picked(reply).jobs]
        if jobs:
            with contextlib.suppress(JQError):
                await self._engine.release(worker, jobs)

    def look_again(self, worker: str) -> None:
        """Have this worker's long polls look at once: what it was refused may be its now."""
        for channel in self._channels.values():
            channel.wake_same(worker)

    def drain(self) -> None:
        """Answer all open long polls at once, and every later one."""
        self._draining = True
        for channel in self._channels.values():
            channel.hand_over()

    async def stop(self) -> None:
        """`drain`, and close all connections; bounded."""
        self.drain()
        await plainly.gather(*(channel.stop() for channel in self._channels.values()))
        self._channels.clear()
        if self._background:
            await asyncio.wait(set(self._background), timeout=2)
        for task in self._background:
            task.cancel()

    async def look(self, spec: Mapping[str, Any], channel: str | None = None) -> list[Any]:
        """One pick. It runs to its end even if the caller is cancelled, since it may have started jobs by
        then, which are given back. With `channel` the worker counts as asleep on it when nothing is found."""
        full = {name: value for name, value in spec.items() if name != "request"}
        if channel is not None:
            # The engine keeps one note per worker and channel. Always the whole window, so that a short poll
            # of a worker does not shorten the note of a long one.
            full["wait"] = {"on": channel, "ms": WINDOW_MS}
        full["request"] = spec["request"]  # at the end (`new_request`)
        task = asyncio.ensure_future(self._engine.raw("pick", pack(full)))
        try:
            reply: list[Any] = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._spawn(self._undo(task, full))
            raise
        return reply

    # -- parts ------------------------------------------------------------------------------------

    async def _pick(self, spec: dict[str, Any], timeout_s: float, deadline: float, *, is_own: bool) -> list[Any]:
        if timeout_s <= 0:
            return await self.look(spec)
        name = channel_of(spec.get("queues"), spec.get("without"))
        with self._using(name) as channel:
            reply = await self.look(spec, name)
            if len(reply) > 1:
                channel.wake_same(str(spec.get("worker")))
                return reply
            return await self._wait(channel, name, spec, reply, deadline, is_own)

    async def _wait(
        self, channel: Channel, name: str, spec: dict[str, Any], reply: list[Any], deadline: float, is_own: bool
    ) -> list[Any]:
        worker = str(spec.get("worker"))
        failures = 0
        try:
            while True:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._draining:
                    return reply
                if failures:
                    await asyncio.sleep(min(left_s, backoff_s(failures - 1)))
                elif reply[0] in AGAIN and is_own:
                    spec["request"] = new_request()  # a repeated one none of whose jobs runs any more says so for ever
                elif reply[0] in AGAIN:
                    # Then the client goes on.
                    channel.pass_on()
                    channel.wake_same(worker)
                    return reply
                else:
                    channel.look_in(reply[0])
                    woken = await channel.sleep(min(left_s, note_s(reply[0])), worker)
                    # Whoever was woken looks, however late: its marker must not get lost.
                    if self._draining or (not woken and time.monotonic() >= deadline):
                        return reply
                try:
                    reply = await self.look(spec, name)
                    failures = 0
                except Unavailable:
                    # Redis is away: the poll goes on, and is answered when it comes back in time.
                    failures += 1
                    continue
                except JQError:
                    channel.pass_on()
                    raise
                if len(reply) > 1:
                    channel.wake_same(worker)
                    return reply
        finally:
            if failures:  # the last look has no answer
                self.abandon(spec)

    async def _undo(self, task: asyncio.Future[Any], spec: Mapping[str, Any]) -> None:
        try:
            await self.give_back(str(spec.get("worker")), await task)
        except Unavailable:
            await self.take_back({name: value for name, value in spec.items() if name != "wait"})
        except JQError:
            pass

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name="give back")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    @contextlib.contextmanager
    def _using(self, name: str) -> Iterator[Channel]:
        """The channel of that name. Those nobody uses any more go, so that a variety of wishes does not pile up."""
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = Channel(self._redis, f"{self._engine.namespace}:wake:{name}")
        self._users[name] = self._users.get(name, 0) + 1
        try:
            yield channel
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                for idle in [n for n, c in self._channels.items() if n not in self._users and not c.connected]:
                    del self._channels[idle]
