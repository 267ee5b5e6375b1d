"""A small client of the HTTP API: `Client` blocks, `AsyncClient` does not; both do the same.

with Client("http://127.0.0.1:8400") as jq:
    job = jq.enqueue("add", [1, 2], keep_result=True)
    jq.wait(job)
    jq.result(job)
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgpack

from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, NotFound, Unavailable
from jqmaster.http.message import MSGPACK

POLL_S = 30.0
TIMEOUT_S = 30.0
PAGE = 1000
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
_REFUSALS: dict[str, type[JQError]] = {
    "INVALID": Invalid, "NOTFOUND": NotFound, "CONFLICT": Conflict, "FULL": Full
}  # fmt: skip


Document = dict[str, Any]


def _job(name: str, argument: Any, options: Mapping[str, Any]) -> bytes:
    packed: bytes = msgpack.packb({"name": name, "argument": argument, **options})
    return packed


def _jobs(jobs: Iterable[Mapping[str, Any]], request: str | None) -> bytes:
    body: dict[str, Any] = {"jobs": [dict(job) for job in jobs]}
    if request is not None:
        body["request"] = request
    packed: bytes = msgpack.packb(body)
    return packed


def _path(job_id: str, rest: str = "", **query: Any) -> str:
    return f"/job/{quote(job_id, safe='')}{rest}" + (f"?{urlencode(query)}" if query else "")


def _page(path: str, cursor: str) -> str:
    return f"{path}?{urlencode({'count': PAGE, **({'cursor': cursor} if cursor else {})})}"


def _constraint(constraint_id: str, rest: str = "") -> str:
    return f"/constraint/{quote(constraint_id, safe='')}{rest}"


def _definition(match: Mapping[str, Any], limits: Mapping[str, Any]) -> bytes:
    packed: bytes = msgpack.packb({"match": match, **_given(limits)})
    return packed


def _hold(seconds: float, by: Any) -> bytes:
    packed: bytes = msgpack.packb(_given({"seconds": seconds, "by": by}))
    return packed


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _content(status: int, body: bytes) -> Any:
    """An answer's value. Raises JQError for an error."""
    # Arguments may hold text that is not UTF-8, and one such job must not hide a whole listing.
    value = msgpack.unpackb(body, strict_map_key=False, unicode_errors="surrogateescape") if body else None
    if status < 400:
        return value
    refusal = value["error"] if isinstance(value, dict) else {}
    message = refusal.get("message", f"the master answered {status}")
    if status == 503:
        raise Unavailable(message)
    kind = _REFUSALS.get(refusal.get("code", ""), Internal)
    raise kind(message, code=refusal.get("code"))


class Client:
    """Blocking client on one connection; not for several threads at once.

    All methods raise the classes of `jqmaster.errors`, Unavailable when the master cannot be reached.
    """

    def __init__(self, url: str = "http://127.0.0.1:8400", *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_s)
        self._prefix = parts.path.rstrip("/")

    def enqueue(self, name: str, argument: Any = None, **options: Any) -> str:
        """Enqueue a job and return its id. `options`: the fields of docs/protocol.md, section 3."""
        return str(self._ask("POST", "/job", _job(name, argument, options))["job_id"])

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any]], *, request: str | None = None) -> list[str]:
        """Enqueue up to 1000 jobs, maps with `name`, `argument` and options: all or none. Returns their ids.

        Repeating a call with the same `request` token, after Unavailable, enqueues nothing twice.
        """
        return list(self._ask("POST", "/jobs", _jobs(jobs, request))["job_ids"])

    def get(self, job_id: str) -> Document:
        """All there is to know about a job. Raises NotFound."""
        return dict(self._ask("GET", _path(job_id)))

    def result(self, job_id: str) -> Any:
        """The result, None if there is none (yet, or any more). The first read starts its grace period."""
        return self._ask("GET", _path(job_id, "/result"))

    def wait(self, job_id: str, timeout_s: float | None = None) -> Document:
        """The job's document once it is done, failed for good or cancelled. Raises TimeoutError, NotFound."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            poll_s = _poll_s(deadline)
            status, body = self._send("GET", _path(job_id, "/polling", timeout=poll_s), timeout_s=poll_s + 10)
            if status != 408:
                return dict(_content(status, body))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s} s")

    def cancel(self, job_id: str, *, force: bool = False) -> None:
        """Cancel a job. Raises NotFound, and Conflict when it has ended or may not be stopped."""
        self._ask("DELETE", _path(job_id, **({"force": "true"} if force else {})))

    def explain(self, job_id: str) -> Document:
        """Why a job waits: what holds it, what is ahead of it, when it may start. Raises NotFound."""
        return dict(self._ask("GET", _path(job_id, "/explain")))

    def constrain(
        self, constraint_id: str, match: Mapping[str, Any], *, by: str | Sequence[str] | None = None,
        concurrency: int | None = None, rate: Mapping[str, Any] | None = None,
        cost: float | str | None = None, order: str | None = None,
    ) -> Document:  # fmt: skip
        """Limit the jobs that `match`, from now on; replaces a constraint of this id whole.

        `by`: a path, or several; each value found there has room of its own. `concurrency`: so many at once.
        `rate`: `{"limit": 100, "period": 60}`, starts in any so many seconds. Section 7 of docs/protocol.md
        tells all of it. Returns the constraint's document. Raises Invalid, and Full at 1000 constraints.
        """
        limits = {"by": by, "concurrency": concurrency, "rate": rate, "cost": cost, "order": order}
        return dict(self._ask("PUT", _constraint(constraint_id), _definition(match, limits)))

    def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint; what it held is free at once. Raises NotFound."""
        self._ask("DELETE", _constraint(constraint_id))

    def constraint(self, constraint_id: str) -> Document:
        """A constraint's definition, and how much of it is in use. Raises NotFound."""
        return dict(self._ask("GET", _constraint(constraint_id)))

    def constraints(self) -> list[Document]:
        """All constraints, in order of id."""
        return self._all("/constraints", "constraints")

    def usage(self, constraint_id: str) -> list[Document]:
        """The keys of a constraint that are in use. Raises NotFound."""
        return self._all(_constraint(constraint_id, "/usage"), "keys")

    def hold(self, constraint_id: str, seconds: float, by: Any = None) -> int:
        """Start nothing under a constraint for so long; 0 seconds open it again.

        `by`: which value (or list of values), for a constraint that has `by`. Returns the moment until which
        it is closed, in ms since 1970. Raises NotFound, Invalid.
        """
        return int(self._ask("POST", _constraint(constraint_id, "/hold"), _hold(seconds, by))["until_ms"])

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all(self, path: str, name: str) -> list[Document]:
        found: list[Document] = []
        cursor = ""
        while True:
            page = self._ask("GET", _page(path, cursor))
            found += page[name]
            cursor = page["cursor"]
            if not cursor:
                return found

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        return _content(*self._send(method, path, body))

    def _send(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = TIMEOUT_S
    ) -> tuple[int, bytes]:
        connection = self._connection
        fresh = connection.sock is None
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            connection.request(method, self._prefix + path, body, _HEADERS)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # A kept connection that the server closed meanwhile: reading again is harmless, writing might
            # not be.
            if not fresh and method == "GET" and not isinstance(error, TimeoutError):
                return self._send(method, path, body, timeout_s)
            raise Unavailable(f"the master does not answer: {error or type(error).__name__}") from error


class AsyncClient:
    """The same for asyncio, with as many connections as are needed. Use it as `async with`."""

    def __init__(self, url: str = "http://127.0.0.1:8400") -> None:
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def enqueue(self, name: str, argument: Any = None, **options: Any) -> str:
        """As `Client.enqueue`."""
        return str((await self._ask("POST", "/job", _job(name, argument, options)))["job_id"])

    async def enqueue_many(
        self, jobs: Iterable[Mapping[str, Any]], *, request: str | None = None
    ) -> list[str]:
        """As `Client.enqueue_many`."""
        return list((await self._ask("POST", "/jobs", _jobs(jobs, request)))["job_ids"])

    async def get(self, job_id: str) -> Document:
        """As `Client.get`."""
        return dict(await self._ask("GET", _path(job_id)))

    async def result(self, job_id: str) -> Any:
        """As `Client.result`."""
        return await self._ask("GET", _path(job_id, "/result"))

    async def wait(self, job_id: str, timeout_s: float | None = None) -> Document:
        """As `Client.wait`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            poll_s = _poll_s(deadline)
            path = _path(job_id, "/polling", timeout=poll_s)
            status, body = await self._send("GET", path, timeout_s=poll_s + 10)
            if status != 408:
                return dict(_content(status, body))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s} s")

    async def cancel(self, job_id: str, *, force: bool = False) -> None:
        """As `Client.cancel`."""
        await self._ask("DELETE", _path(job_id, **({"force": "true"} if force else {})))

    async def explain(self, job_id: str) -> Document:
        """As `Client.explain`."""
        return dict(await self._ask("GET", _path(job_id, "/explain")))

    async def constrain(
        self, constraint_id: str, match: Mapping[str, Any], *, by: str | Sequence[str] | None = None,
        concurrency: int | None = None, rate: Mapping[str, Any] | None = None,
        cost: float | str | None = None, order: str | None = None,
    ) -> Document:  # fmt: skip
        """As `Client.constrain`."""
        limits = {"by": by, "concurrency": concurrency, "rate": rate, "cost": cost, "order": order}
        return dict(await self._ask("PUT", _constraint(constraint_id), _definition(match, limits)))

    async def unconstrain(self, constraint_id: str) -> None:
        """As `Client.unconstrain`."""
        await self._ask("DELETE", _constraint(constraint_id))

    async def constraint(self, constraint_id: str) -> Document:
        """As `Client.constraint`."""
        return dict(await self._ask("GET", _constraint(constraint_id)))

    async def constraints(self) -> list[Document]:
        """As `Client.constraints`."""
        return await self._all("/constraints", "constraints")

    async def usage(self, constraint_id: str) -> list[Document]:
        """As `Client.usage`."""
        return await self._all(_constraint(constraint_id, "/usage"), "keys")

    async def hold(self, constraint_id: str, seconds: float, by: Any = None) -> int:
        """As `Client.hold`."""
        path, body = _constraint(constraint_id, "/hold"), _hold(seconds, by)
        return int((await self._ask("POST", path, body))["until_ms"])

    async def queues(self) -> list[Document]:
        """All queues with their counts by state."""
        return await self._all("/queues", "queues")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _all(self, path: str, name: str) -> list[Document]:
        found: list[Document] = []
        cursor = ""
        while True:
            page = await self._ask("GET", _page(path, cursor))
            found += page[name]
            cursor = page["cursor"]
            if not cursor:
                return found

    async def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        return _content(*await self._send(method, path, body))

    async def _send(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = TIMEOUT_S
    ) -> tuple[int, bytes]:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=64, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector)
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.request(
                method, self._url + path, data=body, headers=_HEADERS, timeout=timeout
            ) as response:
                return response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{self._url} does not answer: {error or type(error).__name__}") from error


def _poll_s(deadline: float | None) -> float:
    return POLL_S if deadline is None else max(0.0, min(POLL_S, deadline - time.monotonic()))
