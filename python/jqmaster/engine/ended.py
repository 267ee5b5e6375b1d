"""Waiting for jobs to end, for clients that poll for an outcome: one subscription for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgpack
import redis.asyncio as redis_asyncio

from jqmaster.connection.endpoint import endpoint_of
from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.together import Together
from jqmaster.engine import packform
from jqmaster.engine.engine import Engine
from jqmaster.errors import Unavailable

T = TypeVar("T")

ENDED = frozenset({"done", "error", "cancelled", "skipped"})
LOOK_EVERY_S = 5  # although nothing was said
DEAF_S = 1  # the same without a subscription
LOOK_S = 5.0  # how long one may take
STOP_TIMEOUT_S = 2.0


class Ended:
    """Tells those who wait when a job reaches `done`, `error`, `cancelled` or `skipped`.

    The subscription is made for the first who waits and kept. Whenever an announcement may have been missed
    everybody asks again; now and then as well, and at the end of their time.
    """

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis) -> None:
        self._engine = engine
        self._redis = redis
        self._channel = f"{engine.namespace}:ended"
        self.subscriptions = Subscriptions(redis)
        self._asked: Together[bytes, Any] = Together(lambda ids: engine.raw("watch", *ids))
        self._waiters: dict[bytes, set[asyncio.Event]] = {}
        self._states: dict[asyncio.Event, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopped = False

    @property
    def is_subscribed(self) -> bool:
        """Whether an end would be heard of now."""
        return self.subscriptions.is_ready(self._channel)

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        """The state of `job_id` once it has ended, or after `timeout_s` seconds, or as soon as the master
        stops; None for an unknown job. Raises Unavailable when the first look fails, or the last."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        if timeout_s <= 0 or self._stopped:
            return await _within(LOOK_S, glance(self._engine, job_id))
        alarm = asyncio.Event()
        self._waiters.setdefault(job_id, set()).add(alarm)
        try:
            self._run("listen", self._listen)
            self._run("look", self._look_now_and_then)
            state = await _within(max(LOOK_S, timeout_s), self._look(job_id))
            return await self._until(state, job_id, alarm, deadline)
        finally:
            self._leave(job_id, alarm)

    def drain(self) -> None:
        """Answer everybody at once with the state as it is, and whoever comes later too."""
        self._stopped = True
        self._alarm_all()

    async def stop(self) -> None:
        """`drain`, and close the subscription; bounded by `STOP_TIMEOUT_S`."""
        self.drain()
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=STOP_TIMEOUT_S)
        await self.subscriptions.stop()

    # -- parts ------------------------------------------------------------------------------------

    async def _until(self, state: str | None, job_id: bytes, alarm: asyncio.Event, deadline: float) -> str | None:
        while state is not None and state not in ENDED and not self._stopped:
            try:
                async with asyncio.timeout_at(deadline):
                    await alarm.wait()
                    alarm.clear()
                    if alarm in self._states:
                        return self._states[alarm]
                    with contextlib.suppress(Unavailable):
                        state = await self._look(job_id)
            except TimeoutError:
                # Nobody may be told that a job goes on which has ended, only because nothing was heard of it.
                return await _within(LOOK_S, self._look(job_id))
        return state

    async def _look(self, job_id: bytes) -> str | None:
        state = await self._asked.get(job_id)
        return None if state is None else bytes(state).decode()

    async def _look_now_and_then(self) -> None:
        for second in itertools.count(1):
            await asyncio.sleep(DEAF_S)
            if not self._waiters:
                return
            if not self.is_subscribed or second % LOOK_EVERY_S == 0:
                await endpoint_of(self._redis).check(self._redis)
                self._alarm_all()

    def _leave(self, job_id: bytes, alarm: asyncio.Event) -> None:
        self._states.pop(alarm, None)
        others = self._waiters.get(job_id)
        if others is not None:
            others.discard(alarm)
            if not others:
                del self._waiters[job_id]

    def _alarm_all(self) -> None:
        for alarms in self._waiters.values():
            for alarm in alarms:
                alarm.set()

    def _run(self, name: str, work: Any) -> None:
        task = self._tasks.get(name)
        if task is None or task.done():
            coroutine: Coroutine[Any, Any, None] = work()
            self._tasks[name] = asyncio.create_task(coroutine, name=f"ended jobs: {name}")

    async def _listen(self) -> None:
        async with self.subscriptions.listen(self._channel) as messages:
            while True:
                message = await messages.get()
                if message is None:
                    self._alarm_all()
                    continue
                job_id, _, state = message.partition(b" ")
                for alarm in self._waiters.get(job_id, ()):
                    self._states[alarm] = state.decode()
                    alarm.set()


async def glance(engine: Engine, job_id: bytes) -> str | None:
    """The state of a job, None for an unknown one. Nobody is told of its end, so nothing is written."""
    [document] = await engine.raw("get", job_id)
    return None if document is None else str(msgpack.unpackb(packform.members(document)["status"]))


async def _within(seconds: float, asking: Coroutine[Any, Any, T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await asking
    except TimeoutError as problem:
        raise Unavailable(f"Redis did not answer within {seconds:g} s", problem) from problem
