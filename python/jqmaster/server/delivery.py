"""Deliveries: what all that a master sends out has in common, and one of a job to a worker's HTTP API (contract: the
worker's own API)."""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import os
import socket
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgpack
from yarl import URL

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import packform
from jqmaster.engine.packform import MSGPACK
from jqmaster.errors import Forbidden, Unavailable, Vanished
from jqmaster.server import signing
from jqmaster.server.answers import LAPSED, NO_ROOM, PushAnswer, failure, read, unreachable
from jqmaster.server.egress import Egress, EgressDenied

log = logging.getLogger("jqmaster.dispatch")

CONNECT_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 10.0
# Before it is said that there is no way to a worker. Somebody who starts again, or a proxy in between that
# loads its settings, is back within that time.
PAUSES_S = (0.1, 0.9)
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)  # of this machine
STALE_WITHIN_S = 0.25  # a worker that closed an idle connection shows it at once; later it is the job that broke it


@dataclass(frozen=True, slots=True)
class PushJob:
    """A job that `assign` started on a worker. `document` and `argument` as the engine gave them, unread; it is
    signed with `secrets`. `key`: the id of the key that the worker was registered with, "" for none."""

    worker: str
    url: str
    secrets: Sequence[str]
    key: str
    document: bytes
    argument: bytes
    id: str
    token: str
    name: str
    attempt: int
    timeout_s: float


def assigned(parts: list[Any], own_secrets: Sequence[str] = ()) -> list[PushJob]:
    """What `assign` replies behind `next_ms`. `own_secrets` are for workers that registered none."""
    jobs = []
    for worker, url, secrets, key, document, argument in zip(*(parts[at::6] for at in range(6)), strict=True):
        fields = msgpack.unpackb(document)
        job = PushJob(
            bytes(worker).decode(), bytes(url).decode(errors="replace"), bytes(secrets).decode().split() or own_secrets,
            bytes(key).decode(), document, argument,
            fields["id"], fields["token"], fields["name"], fields["attempt"], fields["timeout"],
        )  # fmt: skip
        jobs.append(job)
    return jobs


@dataclass(slots=True)
class Exchange:
    """What is noted about one request. A job that was not `sent` as a whole cannot have been read. `denied`: why
    there may be no connection."""

    host: str = ""
    reused: bool = False
    denied: str = ""
    begun: bool = False
    sent: bool = False


class _JobBody(aiohttp.BytesPayload):
    """A request's body that notes when the last byte of it has left this process."""

    def __init__(self, body: bytes, exchange: Exchange) -> None:
        super().__init__(body, content_type=MSGPACK)
        self._exchange = exchange

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits until nothing is left here
        await super().write_with_length(writer, content_length)
        await writer.drain()
        self._exchange.sent = True


_under_way: ContextVar[Exchange] = ContextVar("exchange")
"""Of who is about to send something by a session of `make_session`."""


def make_session(egress: Egress) -> aiohttp.ClientSession:
    """A session for deliveries within `egress`: connections are kept, each worker's own number of slots bounds
    them."""
    trace = aiohttp.TraceConfig()

    async def on_reused(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.reused = True

    async def on_begun(_session: Any, context: Any, _params: Any) -> None:
        context.trace_request_ctx.begun = True

    trace.on_connection_reuseconn.append(on_reused)
    trace.on_request_headers_sent.append(on_begun)

    def opened(where: Any) -> socket.socket:
        exchange = _under_way.get()
        try:
            return egress.open(exchange.host, where)
        except EgressDenied as error:
            exchange.denied = str(error)
            raise

    # Shorter than the 75 s for which servers of ours keep an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=opened)
    return aiohttp.ClientSession(connector=connector, trace_configs=[trace], auto_decompress=False)


def post(
    session: aiohttp.ClientSession, to: str, body: Any, headers: Mapping[str, str], exchange: Exchange, within_s: float
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    """Post a body, for its answer. Raises ValueError for what is no URL, and what aiohttp does."""
    _under_way.set(exchange)
    url = URL(to)
    exchange.host = url.host or ""
    timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_TIMEOUT_S)
    return session.post(
        url, data=body, headers=headers, timeout=timeout, allow_redirects=False, trace_request_ctx=exchange
    )


class Deliverer:
    """Delivers what is to be delivered, `most` at a time, as far as `egress` allows. `start`, then `stop`."""

    log: logging.Logger
    takes: str  # and it cannot, a log says

    def __init__(self, most: int, egress: Egress) -> None:
        self._most = most
        self._egress = egress
        self.session: aiohttp.ClientSession
        self._loop_task: asyncio.Task[None] | None = None
        self._deliveries: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._stopping = False

    @property
    def under_way(self) -> int:
        """Deliveries that have not been answered yet."""
        return len(self._deliveries)

    def start(self) -> None:
        """Begin to deliver."""
        self.session = make_session(self._egress)
        self._loop_task = asyncio.create_task(self._run(), name=self.takes)

    def drain(self) -> None:
        """Take nothing more; what is under way goes on."""
        self._stopping = True
        self._room.set()

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """`drain`, wait for what is under way, and end what is left after `timeout_s`: its leases run out."""
        self.drain()
        if self._loop_task is None:
            return
        deadline = time.monotonic() + timeout_s
        await asyncio.wait({self._loop_task}, timeout=timeout_s)
        self._loop_task.cancel()
        if self._deliveries:
            await asyncio.wait(set(self._deliveries), timeout=max(0.0, deadline - time.monotonic()))
        await end(self._deliveries, 1.0)
        await self.session.close()

    async def take(self, room: int) -> None:
        """Take up to so many, or wait for some, and `begin` each. Raises what the engine does."""
        raise NotImplementedError

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Have something delivered."""
        task = asyncio.create_task(work, name=name)
        self._deliveries.add(task)
        task.add_done_callback(self._ended)

    async def _run(self) -> None:
        failures = 0
        while not self._stopping:
            room = self._most - len(self._deliveries)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                await self.take(room)
                failures = 0
            except Exception as error:
                level = logging.WARNING if isinstance(error, Unavailable | Forbidden) else logging.ERROR
                level = logging.DEBUG if isinstance(error, Vanished) else level  # that was said once
                is_ours = level == logging.ERROR
                self.log.log(level, "cannot %s, trying again: %s", self.takes, error, exc_info=is_ours)
                await asyncio.sleep(backoff_s(failures))
                failures += 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._deliveries.discard(task)
        self._room.set()
        if not task.cancelled() and task.exception() is not None:
            self.log.error("%s failed", task.get_name(), exc_info=task.exception())


async def deliver(session: aiohttp.ClientSession, job: PushJob) -> PushAnswer:
    """Send `job` to its worker and read the answer. Raises nothing but cancellation."""
    body = packform.extend_map(job.document, {"argument": job.argument})
    deadline = time.monotonic() + job.timeout_s
    pauses = iter(PAUSES_S)
    may_be_stale = True
    for number in itertools.count():
        started = time.monotonic()
        exchange = Exchange()
        try:
            url = f"{job.url.rstrip('/')}/worker-job"
            signed = signing.signed(job.secrets, f"{job.id}-{job.token}-{number}", body)
            headers = {"content-type": MSGPACK, "accept": MSGPACK, **signed}
            left_s = max(0.001, deadline - started)
            async with post(session, url, _JobBody(body, exchange), headers, exchange, left_s) as response:
                may_be_stale = False  # it has begun to answer
                return await read(response, job.name)
        except (aiohttp.ServerTimeoutError, aiohttp.InvalidURL):
            return unreachable()
        except TimeoutError:
            return LAPSED
        except (aiohttp.ClientError, OSError) as error:
            if exchange.denied:
                return unreachable(f"{exchange.denied}: see --push-to")
            is_quick = time.monotonic() - started < STALE_WITHIN_S
            if exchange.begun and exchange.reused and may_be_stale and is_quick:
                may_be_stale = False
                continue
            if exchange.sent:
                return failure(
                    f"the worker broke the connection before it answered, and may have run the job: {_told(error)}",
                    is_broken=True,
                )
            pause_s = next(pauses, None)
            if pause_s is None or time.monotonic() + pause_s >= deadline:
                return _no_way(error, exchange)
        except Exception as error:
            # Whatever an URL or an answer brings about, the job must not run on until its lease lapses.
            log.warning("worker %s at %r: %s: %s", job.worker, job.url[:200], type(error).__name__, error)
            if exchange.sent:
                return failure("the worker's answer cannot be read, and it may have run the job", is_broken=True)
            return unreachable()
        await asyncio.sleep(pause_s)
    raise AssertionError


def _no_way(error: Exception, exchange: Exchange) -> PushAnswer:
    """What it means that a job did not get as far as the worker, again and again."""
    if is_ours(error):
        return NO_ROOM
    if exchange.begun:  # it would be so for ever: a job that is too long for its worker, for one
        return failure(f"the worker breaks the connection while the job is sent to it: {_told(error)}", is_broken=True)
    return unreachable()


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__


def is_ours(error: Exception) -> bool:
    """Whether this process can open no connection at all. A name service that met that says something else."""
    if getattr(getattr(error, "os_error", error), "errno", None) in _NO_ROOM:
        return True
    try:
        os.close(os.dup(0))
    except OSError as problem:
        return problem.errno in _NO_ROOM
    return False
