"""Where a worker's jobs come from, and where it says what became of them: Redis itself, or a server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from jqmaster.cluster.cluster import open_engine
from jqmaster.connection.redis_client import RedisClient
from jqmaster.connection.subscriptions import listened
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import replies
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import Seconds
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import Forbidden, Internal, JQError, NotFound, TooFast, Unauthorized, Unavailable, Vanished
from jqmaster.worker.ending import Outcome
from jqmaster.worker.log import log

T = TypeVar("T")

Key = tuple[str, str]  # job id, token

POLL_S = 10.0  # who waits for a job at a server that hangs goes elsewhere so much later
TAKE_BACK_S = STOP_TIMEOUT_S = 2.5
QUIET_S = 60.0  # of its channels: heartbeats find dead connections as well
MOST_REFUSED = 100  # names that a pick can exclude
AWAY = (Unavailable, TooFast, Internal)
PASSES = (*AWAY, Unauthorized, Forbidden)
"""Errors that say nothing of what was said: it is said again, to the next master. Rights may be put right."""
AWAY_EVERY_S, REFUSED_EVERY_S = 10.0, 60.0
INTERNALS = 4  # so often a master, or a script, may fail over the same before that counts as an answer


class EngineSource:
    """What all have in common: the operations are the same, whatever carries them. All methods raise Unavailable while
    the other side is away."""

    def __init__(
        self,
        engine: Operations,
        queues: Sequence[str],
        *,
        order: str = "priority",
        name: str | None = None,
        is_registered: bool = False,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        # One that no other worker has: leases and sleep are noted under it.
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self.worker = self.name
        """Its name; its id, once it is registered."""
        self.is_registered = is_registered
        """Whether the worker is one that must show that it is alive, and can be asked to be quiet or stop."""
        self.about = dict(about or {})
        """What is said of it, as `register` of the engine takes it; with `url` jobs are pushed there."""
        self._engine = engine
        self._wish: dict[str, Any] = {"queues": list(queues), "order": order}
        self.has_refused = asyncio.Event()
        """A name more than it has announced."""
        self._unanswered: dict[str, Any] | None = None
        self._is_listed = False

    @property
    def full_name(self) -> str:
        """Its name; and its id, if it is registered."""
        return self.name if self.worker == self.name else f"{self.name} ({self.worker})"

    def refuse(self, name: str) -> bool:
        """Take no jobs of this name from now on; whether there was room to say so."""
        without = self._wish.setdefault("without", [])
        if name not in without and len(without) < MOST_REFUSED:
            without.append(name)
            self.has_refused.set()
        return name in without

    async def fetch(self, count: int) -> list[Job]:
        """Wait a while for jobs; at most `count`. When it was cancelled `take_back` is to be called."""
        # The same request until it is answered: what an answer brought that was lost comes again.
        spec = self._unanswered or {**self._wish, "request": new_request()}
        self._unanswered = spec = {**spec, "count": count}
        jobs = await self._known(lambda: self._wait({**spec, "worker": self.worker}))
        self._unanswered = None
        return jobs

    async def take_back(self) -> None:
        """Give back what a fetch brought whose answer was lost, or not waited for: the same request brings the same
        jobs. Gives up after `TAKE_BACK_S`."""
        spec, self._unanswered = self._unanswered, None
        if spec is not None:
            with contextlib.suppress(JQError, TimeoutError):
                async with asyncio.timeout(TAKE_BACK_S):
                    if jobs := (await self._engine.pick(self.worker, **spec)).jobs:
                        await self.release([job.held for job in jobs])

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        """Report outcomes and take up to `want` jobs in the same round trip: a state for each outcome, the jobs. The
        same `request` brings the same jobs."""
        pick = {**self._wish, "count": want, "request": request} if want else None
        said = [(outcome.spec, outcome.blob, outcome.follow) for outcome in outcomes]
        finished = await self._known(lambda: self._engine.finish(self.worker, said, pick=pick))
        return finished.states, finished.picked.jobs if finished.picked else []

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        """Renew leases, and pass on what some jobs say: remaining milliseconds, LOST or CANCELLED each; and what is
        asked of the worker."""
        return await self._known(lambda: self._engine.beat(self.worker, held, notes=notes))

    async def listen(self, on_message: Callable[[], None]) -> None:
        """Call `on_message` when the worker is told something (docs/protocol.md), or that may have been missed. Where
        nothing can be heard, heartbeats tell all there is."""

    async def release(
        self, held: list[Key], delay: Seconds = 0, hold: Mapping[str, Seconds] | None = None, message: str = ""
    ) -> None:
        """Give jobs back, with what `JobReleased` says. Raises NotFound for an unknown constraint."""
        await self._engine.release(self.worker, held, delay=delay or None, hold=hold or None, message=message or None)

    async def register(self, running: Sequence[str] = ()) -> None:
        """Be a registered worker from now on; or be listed for some minutes, with the jobs that run."""
        self._is_listed = True  # it may be so although the answer never comes
        self.has_refused.clear()
        about = {**self.about, "refused": self._wish.get("without")}
        if not self.is_registered:
            about |= {"announce": True, "running": running}
        self.worker = await self._engine.register(self.name, self._wish["queues"], **about)

    async def stop(self) -> None:
        """Unregister, give back what a lost answer brought, and close the connections; bounded."""
        await self.take_back()
        if self._is_listed:
            with contextlib.suppress(JQError, TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._engine.unregister(self.worker)

    async def _known(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer. A worker that was dropped as dead and is not registers again, and asks once more."""
        try:
            return await ask()
        except NotFound as error:
            if error.path != "worker":
                raise
        try:
            await self.register()
        except JQError as error:
            raise Unavailable(f"cannot register again: {error}") from error
        return await ask()

    # -- what differs -----------------------------------------------------------------------------

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        """A pick that waits for a while."""
        raise NotImplementedError


class RedisSource(EngineSource):
    """Picks, renews and finishes by the scripts, with no master in between."""

    def __init__(self, url: str, namespace: str, queues: Sequence[str], *, recreate: bool = False, **more: Any) -> None:
        self._redis = open_engine(url, namespace, recreate=recreate)
        super().__init__(self._redis, queues, **more)
        self._waiting = Waiting(*self._redis.engines)

    async def listen(self, on_message: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as hearing:
            for engine in self._redis.engines:
                hearing.create_task(_hear(engine.redis, f"{engine.namespace}:worker:{self.worker}", on_message))

    async def stop(self) -> None:
        await super().stop()
        await self._waiting.stop()
        await self._redis.close()

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        return replies.picked(await self._waiting.pick(spec, POLL_S)).jobs


class HttpSource(EngineSource):
    """Talks to a JQ master. With several URLs the next one is tried when one does not answer."""

    def __init__(self, urls: Sequence[str], queues: Sequence[str], *, key: str | None = None, **more: Any) -> None:
        from jqmaster.engine.http import HttpEngine  # which a worker on Redis does without

        self._http = HttpEngine(urls, key)
        super().__init__(self._http, queues, **more)

    async def stop(self) -> None:
        await super().stop()
        await self._http.close()

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        return (await self._http.pick_waiting(POLL_S, **spec)).jobs


async def _hear(redis: RedisClient, channel: str, on_message: Callable[[], None]) -> None:
    async for message in listened(redis, channel, quiet_s=QUIET_S):
        if message != b"":
            on_message()


async def until_heard(what: str, say: Callable[[], Awaitable[T]], *, gives_up: bool = True) -> T:
    """The answer to what `say` says, again and again. Raises JQError for a refusal; without `gives_up` that lasts until
    somebody mends it."""
    failures, quiet_until = 0, 0.0
    while True:
        try:
            return await say()
        except JQError as error:
            passes = isinstance(error, PASSES) and not (isinstance(error, Internal) and failures >= INTERNALS)
            if gives_up and not passes:
                raise
            is_away = isinstance(error, AWAY)
            # That data has vanished was said once, and lasts.
            if time.monotonic() >= quiet_until and not isinstance(error, Vanished):
                quiet_until = time.monotonic() + (AWAY_EVERY_S if is_away else REFUSED_EVERY_S)
                level = logging.WARNING if is_away else logging.ERROR
                log.log(level, "cannot %s, trying again: %s", what, error)
        await asyncio.sleep(backoff_s(failures))
        failures += 1
