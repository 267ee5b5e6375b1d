"""Where a worker's jobs come from: a JQ master over HTTP, or Redis itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiohttp
import msgpack
import redis.asyncio as redis_asyncio

from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.url import without_password
from jqmaster.engine import replies
from jqmaster.engine.calls import new_request
from jqmaster.engine.engine import Engine, connect, given, pack
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.engine.scripts import Form
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import Conflict, Internal, Invalid, JQError, NotFound, Unavailable
from jqmaster.wire import packform
from jqmaster.wire.credentials import shown
from jqmaster.wire.message import MSGPACK
from jqmaster.worker.worker import Key, Outcome

POLL_S = 30.0
_REFUSALS = {"INVALID": Invalid, "NOTFOUND": NotFound, "CONFLICT": Conflict}


def default_name() -> str:
    """A worker's name that no other worker has: leases and sleep are noted under it."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


class RedisSource:
    """Picks, renews and finishes by the scripts, with no master in between."""

    def __init__(
        self, redis: redis_asyncio.Redis, namespace: str, queues: Sequence[str], *, order: str = "priority",
        name: str | None = None, form: Form = "auto", recreate: bool = False,
    ) -> None:  # fmt: skip
        self.name = name or default_name()
        self.worker = self.name
        self._redis = redis
        self._engine = Engine(redis, namespace, form=form, recreate=recreate)
        self._waiting = Waiting(self._engine, redis)
        self._wish: dict[str, Any] = {"queues": list(queues), "order": order}
        self._unanswered: dict[str, Any] | None = None
        self._registration: dict[str, Any] | None = None
        self._subscriptions = Subscriptions(redis)
        self._renamed = asyncio.Event()

    @classmethod
    def from_url(cls, url: str, namespace: str, queues: Sequence[str], **options: Any) -> RedisSource:
        """A source with its own connections."""
        return cls(connect(url), namespace, queues, **options)

    async def fetch(self, count: int) -> list[Job]:
        # The same request until it is answered: what an answer brought that was lost comes again.
        spec = self._unanswered or {"worker": self.worker, **self._wish, "request": new_request()}
        self._unanswered = spec = {**spec, "count": count}
        try:
            reply = await self._waiting.pick(spec, POLL_S)
        except Unavailable:
            raise
        except BaseException:
            self._unanswered = None  # refused; or cancelled, then what came is given back
            raise
        self._unanswered = None
        return replies.picked(reply).jobs

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        said = [({**one.spec, "id": one.job.id, "token": one.job.token}, one.blob, one.follow) for one in outcomes]
        pick = {**self._wish, "count": want, "request": request} if want else None
        finished = await self._engine.finish(self.worker, said, pick=pick)
        return finished.states, finished.picked.jobs if finished.picked else []

    @property
    def is_registered(self) -> bool:
        return self._registration is not None

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        return await self._engine.beat(self.worker, held, notes=notes)

    async def listen(self, told: Callable[[str], None]) -> None:
        while True:
            self._renamed.clear()
            channel = f"{self._engine.namespace}:worker:{self.worker}"
            async with self._subscriptions.listen(channel) as messages:
                renamed = asyncio.ensure_future(self._renamed.wait())
                coming = asyncio.ensure_future(messages.get())
                try:
                    while not renamed.done():
                        await asyncio.wait((renamed, coming), return_when=asyncio.FIRST_COMPLETED)
                        if coming.done():
                            message = coming.result()
                            coming = asyncio.ensure_future(messages.get())
                            told("" if message is None else message.decode(errors="replace"))
                finally:
                    renamed.cancel()
                    coming.cancel()

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None,
        message: str = "",
    ) -> None:  # fmt: skip
        spec = _release(held, delay, hold, message)
        await self._engine.call("release", pack({**spec, "worker": self.worker}))

    async def register(self, url: str | None, max_jobs: int, secrets: list[str] | None = None) -> None:
        """Be a registered worker; with `url`, have jobs pushed there from now on, signed with each secret."""
        self._registration = {"url": url, "max_jobs": max_jobs, "secrets": secrets}
        await self.register_again()

    async def register_again(self) -> None:
        if self._registration is not None:
            self.worker = await self._engine.register(self.name, self._wish["queues"], **self._registration)
            self._renamed.set()

    async def stop(self) -> None:
        """Unregister, give back what a lost answer brought, and close the connections; bounded."""
        with contextlib.suppress(JQError, TimeoutError):
            async with asyncio.timeout(5):
                if self._unanswered is not None:
                    await self._waiting.take_back(self._unanswered)
                if self._registration is not None:
                    await self._engine.unregister(self.worker)
        await self._subscriptions.stop()
        await self._waiting.stop()
        await self._redis.aclose()


class HttpSource:
    """Talks to a JQ master. With several URLs the next one is tried when one does not answer."""

    def __init__(
        self, urls: str | Sequence[str], queues: Sequence[str], *, order: str = "priority",
        name: str | None = None, key: str | None = None,
    ) -> None:  # fmt: skip
        self.name = name or default_name()
        self.worker = self.name
        self._sent_always = shown(key)
        self._urls = [url.rstrip("/") for url in ([urls] if isinstance(urls, str) else urls)]
        self._wish: dict[str, Any] = {"queues": list(queues), "order": order}
        self._registration: dict[str, Any] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._unanswered: dict[str, Any] | None = None
        self._background: set[asyncio.Task[None]] = set()

    async def fetch(self, count: int) -> list[Job]:
        # As above: the same request until it is answered.
        self._unanswered = spec = {**self._wish, "request": new_request(), **(self._unanswered or {}), "count": count}
        try:
            reply = await self._post("/pick", {**spec, "timeout": POLL_S}, timeout_s=POLL_S + 10)
        except Unavailable:
            raise
        except asyncio.CancelledError:
            self._unanswered = None
            task = asyncio.create_task(self._give_back(spec))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
            raise
        except JQError:
            self._unanswered = None
            raise
        self._unanswered = None
        return _jobs(reply)

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        said = [outcome_map(one, id=one.job.id, token=one.job.token) for one in outcomes]
        body = {"outcomes": packform.raw_array(said)}
        if want:
            body["pick"] = packform.pack({**self._wish, "count": want, "request": request})
        reply = await self._post("/done", packform.raw_map(body))
        return reply["states"], _jobs(reply)

    @property
    def is_registered(self) -> bool:
        return self._registration is not None

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        body = {"jobs": packform.raw_array([_held(key, notes.get(key)) for key in held])}
        reply = await self._post("/worker/heartbeat", packform.raw_map(body))
        return Beat(list(reply["jobs"]), reply.get("request", ""))

    async def listen(self, told: Callable[[str], None]) -> None:
        """Over HTTP the answers to heartbeats tell all there is."""

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None,
        message: str = "",
    ) -> None:  # fmt: skip
        await self._post("/release", _release(held, delay, hold, message))

    async def register(self, url: str | None, max_jobs: int, secrets: list[str] | None = None) -> None:
        """Be a registered worker; with `url`, have jobs pushed there from now on, signed with each secret."""
        self._registration = given(
            name=self.name, queues=self._wish["queues"], max_jobs=max_jobs, url=url, secrets=secrets
        )
        await self.register_again()

    async def register_again(self) -> None:
        if self._registration is not None:
            self.worker = (await self._post("/worker", self._registration))["worker_id"]

    async def stop(self) -> None:
        """Unregister, give back what a `fetch` without an answer may have got, and close the connections; bounded."""
        if self._background:
            await asyncio.wait(set(self._background), timeout=5)
        with contextlib.suppress(JQError, TimeoutError):
            async with asyncio.timeout(5):
                if self._unanswered is not None:
                    await self._give_back(self._unanswered)
                if self._registration is not None:
                    await self._ask("DELETE", "/worker", b"")
        if self._session is not None:
            await self._session.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _give_back(self, spec: Mapping[str, Any]) -> None:
        """The same token again gives the jobs that the cancelled request may have got."""
        with contextlib.suppress(JQError):
            jobs = _jobs(await self._post("/pick", spec))
            if jobs:
                await self.release([job.held for job in jobs])

    async def _post(self, path: str, body: Any, *, timeout_s: float = 30) -> dict[str, Any]:
        return await self._ask("POST", path, body if isinstance(body, bytes) else packform.pack(body), timeout_s)

    async def _ask(self, method: str, path: str, body: bytes, timeout_s: float = 30) -> dict[str, Any]:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector, headers=self._sent_always)
        headers = {"content-type": MSGPACK, "accept": MSGPACK, "worker-id": self.worker}
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=5)
        url = self._urls[0]
        try:
            async with self._session.request(
                method, url + path, data=body, headers=headers, timeout=timeout
            ) as response:
                content = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._urls.append(self._urls.pop(0))
            why = error or type(error).__name__
            raise Unavailable(f"{without_password(url)} does not answer: {why}", error) from error
        if status in (401, 403) or (status == 429 and b"RATE" in content[:40]):
            # As long as its leases last a worker goes on trying: the key may be put right.
            raise Unavailable(f"{without_password(url)}: {_refusal(content)}")
        if status >= 500:
            self._urls.append(self._urls.pop(0))
            raise Unavailable(f"{without_password(url)} answers {status}")
        return _content(status, content)


def outcome_map(outcome: Outcome, **more: Any) -> bytes:
    """An outcome as `POST /done` and an answer to a delivery have it."""
    parts = {"result" if outcome.is_success else "error": outcome.blob}
    if outcome.follow:
        jobs = [packform.extend_map(packform.pack(spec), {"argument": blob}) for spec, blob in outcome.follow]
        parts["enqueue"] = packform.raw_array(jobs)
    return packform.extend_map(packform.pack({**outcome.spec, **more}), parts)


def _held(key: Key, note: Note | None) -> bytes:
    if note is None:
        return packform.pack(key)
    said = packform.pack(given(progress=note.progress, message=note.message))
    if note.argument is not None:
        said = packform.extend_map(said, {"argument": note.argument})
    return packform.raw_array([packform.pack(key[0]), packform.pack(key[1]), said])


def _release(held: list[Key], delay: float, hold: Mapping[str, float] | None, message: str) -> dict[str, Any]:
    said = {"delay": delay, "hold": dict(hold or {}), "message": message}
    return {"jobs": held, **{name: value for name, value in said.items() if value}}


def _refusal(content: bytes) -> str:
    try:
        return str(read_map(content)["error"]["message"])
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        return "the key is refused"


def _content(status: int, content: bytes) -> dict[str, Any]:
    if status == 204:
        return {}
    try:
        reply = read_map(content)
    except (ValueError, msgpack.UnpackException) as error:
        raise Internal(f"the master's answer ({status}) cannot be read: {error}") from error
    if status < 400:
        return reply
    refusal = reply.get("error", {})
    message, field = refusal.get("message", f"status {status}"), refusal.get("field")
    raise _REFUSALS.get(refusal.get("code"), Internal)(message.removeprefix(f"{field}: "), field)


def _jobs(reply: dict[str, Any]) -> list[Job]:
    return [job_of(fields) for fields in reply.get("jobs", [])]


def job_of(fields: Mapping[str, Any]) -> Job:
    """A job as the master sends it. Raises KeyError when a field is missing."""
    return replies.job_of({name: value for name, value in fields.items() if name != "argument"}, fields["argument"])


def read_map(content: bytes) -> dict[str, Any]:
    """Read a MessagePack map of the master's; every `argument` in it stays bytes. Raises what msgpack
    raises."""
    unpacker = msgpack.Unpacker(None, max_buffer_size=max(1, len(content)), strict_map_key=False)
    unpacker.feed(content)

    def one_map() -> dict[str, Any]:
        result: dict[str, Any] = {}
        for _ in range(unpacker.read_map_header()):
            key = unpacker.unpack()
            start = unpacker.tell()
            if key == "argument":
                unpacker.skip()
                result[key] = content[start : unpacker.tell()]
            elif key == "jobs" and content[start : start + 1] not in (b"\x90", b""):
                result[key] = [one_item() for _ in range(unpacker.read_array_header())]
            else:
                result[key] = unpacker.unpack()
        return result

    def one_item() -> Any:
        first = content[unpacker.tell()]
        return one_map() if first & 0xF0 == 0x80 or first in (0xDE, 0xDF) else unpacker.unpack()

    return one_map()
