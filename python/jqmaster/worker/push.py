"""A worker that jobs are pushed to: its own small HTTP API, and its registration with the engine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any

import hypercorn.asyncio
import msgpack

from jqmaster.connection.wake import end
from jqmaster.engine import packform, replies
from jqmaster.engine.calling import pack
from jqmaster.engine.packform import MSGPACK
from jqmaster.server.http import http1
from jqmaster.server.message import is_msgpack
from jqmaster.server.origin import OwnNames, is_foreign, is_loopback, may_change
from jqmaster.server.signing import Verifier
from jqmaster.server.sockets import bind_tcp
from jqmaster.worker.beats import Key
from jqmaster.worker.ending import Ending, Release
from jqmaster.worker.worker import Worker

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = tuple[int, bytes, list[tuple[bytes, bytes]]]

log = logging.getLogger("jqmaster.worker")

MAX_BODY_BYTES = 64 * 1024 * 1024
REMEMBERED = 2000  # deliveries; one that comes twice must not start twice
STOP_TIMEOUT_S = 3.0


class PushHost:
    """Serves `POST /worker-job` for a `Worker`. `start` listens, `stop` ends it within `STOP_TIMEOUT_S`.

    It runs what is signed with one of `secrets`. On loopback it answers to addresses, localhost and `hosts` alone.
    `synchronous`: the answer to a delivery is the job's outcome (200), instead of 202 and a report later.
    """

    def __init__(
        self, worker: Worker, secrets: Sequence[str], *, host: str = "127.0.0.1", port: int = 0,
        synchronous: bool = False, hosts: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.worker = worker
        self.url = ""
        self._address = (host, port)
        self._synchronous = synchronous
        self._verifier = Verifier(secrets)
        self._names = OwnNames(frozenset(hosts) if is_loopback(host) else None)
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._shutdown = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen, and return the URL to register."""
        listening, self.url = bind_tcp(*self._address)
        listening.listen(http1.BACKLOG)
        config = http1.config(listening.detach())
        config.graceful_timeout = STOP_TIMEOUT_S
        serving = hypercorn.asyncio.serve(self._app, config, shutdown_trigger=self._shutdown.wait)  # type: ignore[arg-type]
        self._serving = asyncio.create_task(serving, name="worker's http server")
        return self.url

    async def stop(self) -> None:
        """Stop listening."""
        self._shutdown.set()
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=STOP_TIMEOUT_S)
            await end([self._serving], STOP_TIMEOUT_S)

    # -- parts ------------------------------------------------------------------------------------

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            body = await _body(receive)
            if body is None:
                return
            refused = self._refusal(scope, body)
            status, answer, headers = refused or await self._answer(scope["method"], scope["path"], body)
            head = [(b"content-type", MSGPACK.encode()), (b"content-length", b"%d" % len(answer)), *headers]
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": answer})

    def _refusal(self, scope: Scope, body: bytes) -> Answer | None:
        """A browser may have been made to send it, or anybody else."""
        headers = scope["headers"]
        if (name := self._names.unknown(headers)) is not None:
            return 403, _error("FORBIDDEN", f"this worker does not answer to {name!a}"), []
        if may_change(scope["method"]) and is_foreign(headers):
            return 403, _error("FORBIDDEN", "cross-origin request refused"), []
        if scope["path"] != "/worker-job" or scope["method"] != "POST" or len(body) > MAX_BODY_BYTES:
            return None
        if not is_msgpack(next((value for name, value in headers if name == b"content-type"), b"")):
            return 415, _error("UNSUPPORTED", f"content-type: expected {MSGPACK}"), []
        if (why := self._verifier.refusal(headers, body)) is not None:
            log.warning("a push was refused: %s", why)
            return 401, _error("UNAUTHORIZED", why), []
        return None

    async def _answer(self, method: str, path: str, body: bytes) -> Answer:
        if path == "/health" and method == "GET":
            why = self.worker.trouble.why
            return (200, packform.pack({"status": "ok"}), []) if why is None else (503, _error("UNAVAILABLE", why), [])
        if path != "/worker-job":
            return 404, _error("NOTFOUND", "no such path"), []
        if method != "POST":
            return 405, _error("METHOD", "only POST"), [(b"allow", b"POST")]
        if len(body) > MAX_BODY_BYTES:
            return 413, _error("TOOLARGE", f"more than {MAX_BODY_BYTES} bytes"), []
        try:
            fields = replies.document(body)
            job = replies.job_of(fields, fields.pop("argument"))
        except KeyError as error:
            return 400, _error("INVALID", f"{error.args[0]}: missing"), []
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            return 400, _error("INVALID", f"the body is no job: {error or type(error).__name__}"), []
        if job.name not in self.worker.functions:
            return 404, _error("NOTFOUND", f"this worker has no function for jobs named {job.name}"), []
        key = job.held
        if key in self._seen and not self._synchronous:
            return 202, b"", []
        if self.worker.takes_none or self.worker.free <= 0:
            return 503, _error("BUSY", "no room for another job"), [(b"retry-after", b"1")]
        self._remember(key)
        if not self._synchronous:
            self.worker.start(job)
            return 202, b"", []
        ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.worker.start(job, renews=False, report=lambda it: None if ending.done() else ending.set_result(it))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(job.timeout):
                outcome = await ending
                if isinstance(outcome, Release):
                    refused = await self.worker.give_back(outcome)
                    if not refused:
                        return 202, b"", []
                    [outcome] = refused
                return 200, _answer(outcome.spec, outcome.blob, outcome.follow), []
        return 504, _error("TIMEOUT", "the job's time ran out"), []

    def _remember(self, key: Key) -> None:
        self._seen[key] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


def _answer(spec: Mapping[str, Any], blob: bytes, follow: Sequence[tuple[Mapping[str, Any], bytes]]) -> bytes:
    """An outcome as an answer to a delivery has it."""
    parts = {"result" if spec["type"] == "success" else "error": blob}
    if follow:
        jobs = [packform.extend_map(pack(job), {"argument": argument}) for job, argument in follow]
        parts["enqueue"] = packform.raw_array(jobs)
    return packform.extend_map(pack(spec), parts)


def _error(code: str, message: str) -> bytes:
    return packform.pack({"error": {"code": code, "message": message}})


async def _body(receive: Receive) -> bytes | None:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        size += len(message.get("body", b""))
        if size <= MAX_BODY_BYTES or not chunks:
            chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
