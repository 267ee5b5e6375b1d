"""A worker that jobs are pushed to: its own small HTTP API (docs/protocol.md)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgpack
from aiohttp import web

from jqmaster.engine import replies
from jqmaster.engine.packform import MSGPACK
from jqmaster.server import signing
from jqmaster.server.sockets import bind_tcp
from jqmaster.worker.attempts import now
from jqmaster.worker.log import log
from jqmaster.worker.sources import Key
from jqmaster.worker.worker import Worker

MAX_BODY_BYTES = 64 * 1024 * 1024
STOP_TIMEOUT_S = 3.0


class PushHost:
    """Serves `POST /worker-job` for a `Worker`: runs what is signed with one of `secrets`, whoever sent it. `start`
    listens, `stop` ends it within `STOP_TIMEOUT_S`."""

    def __init__(self, worker: Worker, secrets: Sequence[str], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._worker = worker
        self._address = (host, port)
        self._secrets = tuple(secrets)
        self._seen: dict[Key, float] = {}  # in order of their coming: what comes twice must not start twice
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes([web.post("/worker-job", self._job)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_TIMEOUT_S)

    async def start(self) -> str:
        """Listen, and return the URL to register."""
        listening, url = bind_tcp(*self._address)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()
        return url

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _job(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = [(name.lower(), value) for name, value in request.raw_headers]
        if (why := signing.refusal(self._secrets, headers, body)) is not None:
            log.warning("a push was refused: %s", why)
            return _error(401, "UNAUTHORIZED", why)
        try:
            fields = replies.document(body)
            job = replies.job_of(fields, fields.pop("argument"))
        except (KeyError, ValueError, TypeError, msgpack.UnpackException) as error:
            return _error(400, "INVALID", f"the body is no job: {error!r}")
        if job.name not in self._worker.functions:
            return _error(404, "NOTFOUND", f"this worker has no function for jobs named {job.name}")
        while self._seen and now() - next(iter(self._seen.values())) > signing.REMEMBER_S:
            del self._seen[next(iter(self._seen))]
        if job.held in self._seen:
            return web.Response(status=202)
        self._seen[job.held] = now()
        if not self._worker.attempts.takes or self._worker.attempts.free <= 0:
            busy = _error(503, "BUSY", "no room for another job")
            busy.headers["retry-after"] = "1"
            return busy
        # It may have waited for this process, which stood still. Clocks that differ cost a heartbeat.
        self._worker.start(job, now() - max(0, time.time() - int(request.headers["webhook-timestamp"])))
        return web.Response(status=202)


def _error(status: int, code: str, message: str) -> web.Response:
    document = {"error": {"code": code, "message": message}}
    return web.Response(status=status, body=msgpack.packb(document), content_type=MSGPACK)
