"""Waiting for jobs to end, for clients that poll for an outcome: one subscription for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError

from jqmaster.engine import Engine
from jqmaster.errors import Unavailable
from jqmaster.wake import backoff_s, blocking_client

log = logging.getLogger("jqmaster.ended")

ENDED = frozenset({"done", "error", "cancelled"})
SUBSCRIBE_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 2.0


class Ended:
    """Tells those who wait when a job reaches `done`, `error` or `cancelled`.

    The subscription is made for the first who waits and kept. When Redis was away everybody asks again, since
    an announcement may have been missed.
    """

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis) -> None:
        self._engine = engine
        self._redis = redis
        self._channel = f"{engine.namespace}:ended"
        self._waiters: dict[bytes, set[asyncio.Event]] = {}
        self._states: dict[asyncio.Event, str] = {}
        self._listener: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()
        self._stopped = False

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        """The state of `job_id` once it has ended, or after `timeout_s` seconds, or as soon as the master
        stops; None for an unknown job. Raises Unavailable when even the first look fails."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        if timeout_s <= 0 or self._stopped:
            return await self._look(job_id)
        alarm = asyncio.Event()
        self._waiters.setdefault(job_id, set()).add(alarm)
        try:
            try:
                async with asyncio.timeout(min(timeout_s, SUBSCRIBE_TIMEOUT_S)):
                    await self._subscribe()
            except TimeoutError:
                return await self._look(job_id)
            return await self._until(job_id, alarm, deadline)
        finally:
            self._leave(job_id, alarm)

    def drain(self) -> None:
        """Answer everybody at once with the state as it is, and whoever comes later too."""
        self._stopped = True
        self._alarm_all()

    async def stop(self) -> None:
        """`drain`, and close the subscription; bounded by `STOP_TIMEOUT_S`."""
        self.drain()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener}, timeout=STOP_TIMEOUT_S)

    # -- parts ------------------------------------------------------------------------------------

    async def _until(self, job_id: bytes, alarm: asyncio.Event, deadline: float) -> str | None:
        state = await self._look(job_id)
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
                return state
        return state

    async def _look(self, job_id: bytes) -> str | None:
        # In a task of its own: in Python 3.11 `wait_for`, which redis-py uses, may swallow a cancellation.
        [state] = await asyncio.shield(asyncio.ensure_future(self._engine.call("watch", job_id)))
        return None if state is None else bytes(state).decode()

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

    async def _subscribe(self) -> None:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="ended jobs")
        await self._subscribed.wait()

    async def _listen(self) -> None:
        failures = 0
        while not self._stopped:
            client = blocking_client(self._redis)
            try:
                connection: Any = client.connection_pool.make_connection()
                await connection.connect()
                try:
                    await connection.send_command("SSUBSCRIBE", self._channel)
                    while not self._stopped:
                        kind, _, payload = await connection.read_response(push_request=True)
                        if kind == b"ssubscribe":
                            failures = 0
                            self._subscribed.set()
                            self._alarm_all()
                        elif kind == b"smessage":
                            self._announce(payload)
                finally:
                    await connection.disconnect(nowait=True)
            except (RedisError, OSError) as error:
                log.info("lost the subscription to ended jobs: %s", error)
            finally:
                self._subscribed.clear()
            await asyncio.sleep(backoff_s(failures))
            failures += 1

    def _announce(self, payload: bytes) -> None:
        job_id, _, state = payload.partition(b" ")
        for alarm in self._waiters.get(job_id, ()):
            self._states[alarm] = state.decode()
            alarm.set()
