"""What all that a master sends out has in common: jobs go to workers (`dispatch`), notifications to receivers
(`webhooks`), signed, as far as `egress` allows, and to none more than `breakers` let through."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from jqmaster.connection.url import without_password
from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine.engine import Engine, pack
from jqmaster.errors import Forbidden, Invalid, JQError, Unavailable, Vanished
from jqmaster.server import answers, signing
from jqmaster.server.answers import Answer
from jqmaster.server.breakers import Breakers
from jqmaster.server.egress import Egress
from jqmaster.server.meters import Meters

CONNECT_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 10.0
STALE_WITHIN_S = 0.25  # a worker that closed an idle connection shows it at once; later it is the job that broke it


@dataclass(frozen=True, slots=True)
class Push:
    """A job that `worker` holds, and the request that carries it to `receiver`. `ids`: one for each time that it may be
    sent, as a kept connection may turn out to be closed. `key`: the id of the key that the worker was registered with,
    "" for none. `answer`: what comes of it without sending."""

    id: str
    token: str
    worker: str
    attempt: int
    receiver: str
    url: str
    secrets: Sequence[str]
    ids: Sequence[str]
    headers: Mapping[str, str]
    body: bytes
    within_s: float
    name: str = ""
    key: str = ""
    answer: Answer | None = None


@dataclass(slots=True)
class _Exchange:
    """What is noted about a request under way. Until it is `sent` nobody can have read anything of it."""

    host: str
    sent: bool = False
    reused: bool = False
    denied: str = ""


_exchange: ContextVar[_Exchange] = ContextVar("exchange")


def make_session(egress: Egress) -> aiohttp.ClientSession:
    """A session for pushes within `egress`: connections are kept, each worker's own number of slots bounds them."""

    async def on_reused(*_: Any) -> None:
        _exchange.get().reused = True

    async def on_sent(*_: Any) -> None:
        _exchange.get().sent = True

    def opened(where: Any) -> socket.socket:
        family, kind, protocol, _, address = where
        exchange = _exchange.get()
        if not egress.may(exchange.host, address[0]):
            exchange.denied = f"this server may not push to {exchange.host} at {address[0]}: see --push-to"
            raise PermissionError(exchange.denied)
        return socket.socket(family, kind, protocol)

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(on_reused)
    trace.on_request_headers_sent.append(on_sent)
    # Shorter than the 75 s for which servers of ours keep an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=opened)
    return aiohttp.ClientSession(
        connector=connector, trace_configs=[trace], auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    )


class Sender:
    """Sends what `take` brings, `most` at a time. `start`, then `stop`."""

    log: logging.Logger
    takes: str  # and it cannot, a log says
    what: str  # receivers are

    def __init__(self, engine: Engine, most: int, egress: Egress, meters: Meters) -> None:
        self.engine = engine
        self.meters = meters
        self.breakers = Breakers(most, meters, self.poke, self.what)
        self.session: aiohttp.ClientSession
        self._most = most
        self._egress = egress
        self._loop_task: asyncio.Task[None] | None = None
        self._pushes: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()

    # -- what kinds of it do differently ----------------------------------------------------------

    async def take(self, room: int) -> list[Push]:
        """Up to so many, or none after a while. Raises what the engine does."""
        raise NotImplementedError

    async def judge(self, push: Push, response: aiohttp.ClientResponse) -> Answer:
        """What an answer means."""
        raise NotImplementedError

    async def give_back(self, push: Push, answer: Answer) -> None:
        """Tell the engine that nothing came of it, which is no fault of the job's."""
        raise NotImplementedError

    def held(self, push: Push) -> Answer | None:
        """Why its receiver is to get nothing now; None: it gets this, which is noted."""
        if self.breakers.take(push.receiver, without_password(push.url)):
            return None
        return Answer("held", f"the {self.what} {push.receiver} failed often; it is tried with one job")

    def poke(self) -> None:
        """There may be something to take."""

    # -- life -------------------------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """Pushes that have not been answered yet."""
        return len(self._pushes)

    def start(self) -> None:
        """Begin to send."""
        self.session = make_session(self._egress)
        self._loop_task = asyncio.create_task(self._run(), name=self.takes)

    def drain(self) -> None:
        """Take nothing more; what is under way goes on."""
        self._stopping.set()
        self._room.set()

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """`drain`, wait for what is under way, and end what is left after `timeout_s`: its leases run out."""
        self.drain()
        if self._loop_task is None:
            return
        deadline = time.monotonic() + timeout_s
        await asyncio.wait({self._loop_task}, timeout=timeout_s)
        self._loop_task.cancel()
        if self._pushes:
            await asyncio.wait(set(self._pushes), timeout=max(0.0, deadline - time.monotonic()))
        await end(self._pushes, 1.0)
        await self.session.close()

    async def pause(self, seconds: float) -> None:
        """Sleep, but not longer than this runs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            room = self._most - len(self._pushes)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                for push in await self.take(room):
                    self._begin(push)
                failures = 0
            except Exception as error:
                level = logging.WARNING if isinstance(error, Unavailable | Forbidden) else logging.ERROR
                level = logging.DEBUG if isinstance(error, Vanished) else level  # that was said once
                self.log.log(level, "cannot %s, trying again: %s", self.takes, error, exc_info=level == logging.ERROR)
                await self.pause(backoff_s(failures))
                failures += 1

    # -- one push ---------------------------------------------------------------------------------

    def _begin(self, push: Push) -> None:
        answer = push.answer or self.held(push)
        work = self._report(push, answer) if answer else self._carry(push)
        task = asyncio.create_task(work, name=f"push {push.id}")
        self._pushes.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pushes.discard(task)
        self._room.set()
        if not task.cancelled() and task.exception() is not None:
            self.log.error("%s failed", task.get_name(), exc_info=task.exception())

    async def _carry(self, push: Push) -> None:
        answer = Answer("cancelled")
        try:
            answer = await self.send(push)
        finally:
            self.breakers.done(push.receiver, answer.trouble)
        await self._report(push, answer)

    async def send(self, push: Push) -> Answer:
        """Send it and read the answer. Raises nothing but cancellation."""
        deadline = time.monotonic() + push.within_s
        for push_id in push.ids:
            started = time.monotonic()
            _exchange.set(exchange := _Exchange(""))
            timeout = aiohttp.ClientTimeout(max(0.001, deadline - started), sock_connect=CONNECT_TIMEOUT_S)
            try:
                url = URL(push.url)
                exchange.host = url.host or ""
                headers = {**push.headers, **signing.signed(push.secrets, push_id, push.body)}
                async with self.session.post(
                    url, data=push.body, headers=headers, timeout=timeout, allow_redirects=False
                ) as response:
                    exchange.reused = False  # it has begun to answer
                    return await self.judge(push, response)
            except Exception as error:
                why = type(error).__name__  # what it says may be what something inside answered
                is_stale = exchange.reused and time.monotonic() - started < STALE_WITHIN_S
                if is_stale and push_id != push.ids[-1]:
                    continue
                self.log.info("job %s to %s %s: %s: %s", push.id, self.what, push.receiver, why, error)
                if not exchange.sent:
                    return answers.unreachable(exchange.denied or f"the {self.what} could not be reached ({why})")
                if isinstance(error, TimeoutError):
                    return Answer("lapsed", trouble=f"no answer within {push.within_s:g} s")
                broken = f"the {self.what} broke the connection before it answered ({why}), and may have read it"
                return answers.failure(broken, is_trouble=True)
        raise AssertionError

    async def _report(self, push: Push, answer: Answer) -> None:
        if answer.spec is None:
            if answer.outcome not in ("accepted", "lapsed"):
                await self._insist(push, lambda: self.give_back(push, answer))
            return
        try:
            await self._insist(push, lambda: self.finish(push, answer))
        except JQError as error:
            refused = answers.failure(f"the {self.what}'s answer is no outcome: {error.path}: {error.message}")
            await self._insist(push, lambda: self.finish(push, refused))

    async def finish(self, push: Push, answer: Answer) -> None:
        """Tell the engine the outcome."""
        outcome = {**(answer.spec or {}), "id": push.id, "token": push.token}
        await self.engine.raw("finish", pack({"worker": push.worker}), pack(outcome), answer.blob, *answer.follow)

    async def _insist(self, push: Push, say: Callable[[], Awaitable[None]]) -> None:
        """Say it to the engine, again and again while Redis is away or refuses, for as long as the lease may stand.
        Repeating is safe: what is said goes by the token."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(1.0, push.within_s)):
                failures = 0
                while True:
                    try:
                        return await say()
                    except (Unavailable, Forbidden) as error:
                        self.log.warning("cannot report job %s, trying again: %s", push.id, error)
                        await asyncio.sleep(backoff_s(failures))
                        failures += 1
                    except JQError as error:
                        if isinstance(error, Invalid) or (error.path or "").startswith("outcomes"):
                            raise
                        self.log.warning("job %s: %s", push.id, error)
                        return
