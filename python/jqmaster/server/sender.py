"""What a server sends out: jobs to workers (`dispatch`) and notifications to receivers (`webhooks`). Both are jobs that
it carries to a URL, signed, where `egress` allows it. Who is pushed to, and how often, the engine decides."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import aiohttp

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import packform
from jqmaster.engine.engine import Engine, pack
from jqmaster.errors import Forbidden, JQError, Unavailable
from jqmaster.server import signing
from jqmaster.server.egress import Egress
from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.dispatch")

CONNECT_TIMEOUT_S = 5.0
STALE_WITHIN_S = 0.25  # a worker that closed an idle connection shows it at once; later it is the job that broke it
AGAIN_S = 1.0
BARRED_S = 300.0
FULL_S = 0.05


@dataclass(slots=True)
class Push:
    """A job that `worker` holds, and the request that carries it to `url`, of which logs tell as `receiver`.

    `request_id`: which of its pushes it is, for the receiver. `key`: the id of the key that the worker was registered
    with, "" for none. Until it `is_sent` nobody can have read anything of it."""

    id: str
    token: str
    worker: str
    receiver: str
    url: str
    secrets: Sequence[str]
    request_id: str
    body: bytes
    within_s: float
    key: str = ""
    is_sent: bool = False
    is_reused: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a push. `outcome`, in a word:

    - `accepted`: the worker has it, and says by `POST /done` what becomes of it.
    - `success`, `failure`: that came as the answer: `spec`, without id and token; `follow`: specs and arguments of jobs
      to enqueue.
    - `unknown`, `busy`, `unreachable`: the receiver did not take it; or, with a `spec`, broke the connection.
    - `lapsed`: no answer within its time.
    - `held`: it was not sent, or its answer counts no more: the job goes back.

    `message`: what this server says of it.
    """

    outcome: str
    message: str = ""
    retry_after_s: float | None = None
    spec: Mapping[str, Any] | None = None
    blob: bytes = packform.NIL
    follow: tuple[bytes, ...] = ()


def failure(message: str, *, should_retry: bool = True, outcome: str = "failure") -> Answer:
    """An outcome that the server states for the receiver."""
    return Answer(outcome, message, spec={"type": "failure", "should_retry": should_retry, "message": message})


def make_session(egress: Egress) -> aiohttp.ClientSession:
    """A session for pushes within `egress`: connections are kept, each worker's own number of slots bounds them."""

    async def on_reused(_session: Any, context: Any, _parameters: Any) -> None:
        context.trace_request_ctx.is_reused = True

    async def on_sent(_session: Any, context: Any, _parameters: Any) -> None:
        context.trace_request_ctx.is_sent = True

    def open_socket(where: Any) -> socket.socket:
        family, kind, protocol, _, address = where
        if not egress.may(address[0]):
            raise PermissionError(errno.EPERM, f"this server may not push to {address[0]}: see --push-to")
        return socket.socket(family, kind, protocol)

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(on_reused)
    trace.on_request_headers_sent.append(on_sent)
    # Shorter than the 75 s for which servers of ours keep an idle connection.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=open_socket)
    return aiohttp.ClientSession(
        connector=connector, trace_configs=[trace], auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    )


class Sender:
    """Sends what `take` brings. `start`, then `stop`."""

    what: str  # receivers are
    most: int  # at a time
    headers: ClassVar[Mapping[str, str]]

    def __init__(self, engine: Engine, master: str, egress: Egress, meters: Meters) -> None:
        self.engine = engine
        self.master = master
        self.meters = meters
        self.under_way: dict[asyncio.Task[None], Push] = {}
        self._session: aiohttp.ClientSession
        self._egress = egress
        self._loop_task: asyncio.Task[None]
        self._stopping = asyncio.Event()

    # -- what kinds of it do differently ----------------------------------------------------------

    async def take(self) -> list[Push]:
        """Some, or none after a while. Raises what the engine does."""
        raise NotImplementedError

    async def judge(self, push: Push, response: aiohttp.ClientResponse) -> Answer:
        """What an answer means."""
        raise NotImplementedError

    async def finish(self, push: Push, answer: Answer) -> None:
        """Tell the engine the outcome. What this server says is no sign of life of the worker."""
        outcome = {**(answer.spec or {}), "id": push.id, "token": push.token}
        who = {"worker": self.master if answer.message else push.worker}
        await self.engine.raw("finish", pack(who), pack(outcome), answer.blob, *answer.follow)

    async def refuse(self, push: Push, answer: Answer) -> None:
        """Tell the engine that the receiver did not take it, or did not answer."""
        await self.finish(push, failure(answer.message))

    async def release(self, push: Push, answer: Answer) -> None:
        """Give the job back, which costs it nothing."""
        job = (push.id, push.token)
        await self.engine.release(push.worker, [job], delay=answer.retry_after_s, message=answer.message or None)

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to send."""
        self._session = make_session(self._egress)
        self._loop_task = asyncio.create_task(self._run(), name=f"push to {self.what}s")

    async def stop(self, timeout_s: float) -> None:
        """Take nothing more, wait for what is under way, and end what is left after `timeout_s`: its leases run out."""
        self._stopping.set()
        await asyncio.wait({self._loop_task}, timeout=timeout_s)
        await end({self._loop_task, *self.under_way}, 1.0)
        await self._session.close()

    async def pause(self, seconds: float) -> None:
        """Sleep, but not longer than this runs."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            if len(self.under_way) >= self.most:
                await self.pause(FULL_S)
                continue
            try:
                for push in await self.take():
                    task = asyncio.create_task(self._carry(push), name=f"push {push.id}")
                    self.under_way[task] = push
                    task.add_done_callback(self.under_way.pop)
                failures = 0
            except Exception as error:
                is_fault = not isinstance(error, JQError)
                log.warning("cannot take jobs for %ss, trying again: %s", self.what, error, exc_info=is_fault)
                await self.pause(backoff_s(failures))
                failures += 1
        if self.under_way:
            await asyncio.wait(self.under_way)

    # -- one push ---------------------------------------------------------------------------------

    async def _carry(self, push: Push) -> None:
        started = time.perf_counter()
        with self.meters.under_way.track_inprogress():
            answer = await self.send(push)
        self.meters.delivery(self.what, answer.outcome, time.perf_counter() - started)
        await self._report(push, answer)

    async def send(self, push: Push) -> Answer:
        """Send it and read the answer. Raises nothing but cancellation."""
        deadline = time.monotonic() + push.within_s
        for is_again in (False, True):
            started = time.monotonic()
            push.is_sent = push.is_reused = False
            try:
                signed = {**self.headers, **signing.signed(push.secrets, push.request_id, push.body)}
                timeout = aiohttp.ClientTimeout(max(0.001, deadline - started), sock_connect=CONNECT_TIMEOUT_S)
                async with self._session.post(
                    push.url, data=push.body, headers=signed, timeout=timeout, allow_redirects=False,
                    trace_request_ctx=push,
                ) as response:  # fmt: skip
                    push.is_reused = False  # it has begun to answer
                    return await self.judge(push, response)
            except Exception as error:
                is_stale = push.is_reused and time.monotonic() - started < STALE_WITHIN_S
                if is_again or not is_stale:
                    return self.failed(push, error)
        raise AssertionError

    def failed(self, push: Push, error: Exception) -> Answer:
        """What it means that a request failed."""
        why = type(error).__name__  # what it says may be what something inside answered
        log.info("job %s to %s %s: %s: %s", push.id, self.what, push.receiver, why, error)
        code, text = (error.errno, error.strerror) if isinstance(error, OSError) else (None, None)
        if code in (errno.EMFILE, errno.ENFILE):
            return Answer("held", "this server has no more files to open", AGAIN_S)
        if not push.is_sent:
            if code == errno.EPERM:
                return Answer("unreachable", str(text), BARRED_S)
            return Answer("unreachable", f"the {self.what} could not be reached ({why})")
        if isinstance(error, TimeoutError):
            return Answer("lapsed", f"no answer within {push.within_s:g} s")
        broken = f"the {self.what} broke the connection before it answered ({why}), and may have read it"
        return failure(broken, outcome="unreachable")

    async def _report(self, push: Push, answer: Answer) -> None:
        """Tell the engine, again and again while Redis is away or refuses, for as long as the lease may stand.
        Repeating is safe: what is said goes by the token."""
        failures = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(1.0, push.within_s)):
                while answer.outcome != "accepted":
                    is_held = answer.outcome == "held"
                    tell = self.finish if answer.spec is not None else self.release if is_held else self.refuse
                    try:
                        return await tell(push, answer)
                    except (Unavailable, Forbidden) as error:
                        log.warning("cannot report job %s, trying again: %s", push.id, error)
                        await asyncio.sleep(backoff_s(failures))
                        failures += 1
                    except JQError as error:
                        if answer.spec is None or answer.message:  # which was said in the receiver's place
                            log.warning("job %s: %s", push.id, error)
                            return
                        why = f"{error.path}: {error.message}"
                        answer = failure(f"the {self.what}'s answer is no outcome: {why}")
