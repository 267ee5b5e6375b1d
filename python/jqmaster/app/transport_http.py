"""The library's calls by way of JQ masters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgpack

from jqmaster.app.transport import PAGE, Prepared
from jqmaster.engine import replies
from jqmaster.engine.calls import ABSENT
from jqmaster.engine.replies import Document, Enqueued, Job
from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, Lost, NotDurable, NotFound, Unavailable
from jqmaster.wire import packform
from jqmaster.wire.message import MSGPACK
from jqmaster.worker.sources import job_of, read_map

TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
AT_A_TIME = 32  # documents
MOST_POLL_S = 30.0
MOST_POLLS = 256  # connections for those who wait; more take turns, none for long
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
_REFUSALS: dict[str, type[JQError]] = {
    "INVALID": Invalid, "NOTFOUND": NotFound, "CONFLICT": Conflict, "LOST": Lost, "FULL": Full,
}  # fmt: skip


class HttpTransport:
    """Asks the first of `urls`; when it does not answer, the next one from then on."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._session: aiohttp.ClientSession | None = None
        self._polls = asyncio.Semaphore(MOST_POLLS)
        self._polling = 0

    async def enqueue(self, jobs: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        bodies = [packform.extend_map(packform.pack(spec), {"argument": argument}) for spec, argument in jobs]
        if len(bodies) == 1 and request is None:
            # Masters put those that come one by one together.
            status, content = await self._send("POST", "/job", bodies[0], repeats=False)
            return [Enqueued(str(_value(status, content)["job_id"]), status == 201)]
        body = {"jobs": packform.raw_array(bodies)}
        if request is not None:
            body["request"] = packform.pack(request)
        repeats = request is not None
        reply = _value(*await self._send("POST", "/jobs", packform.raw_map(body), repeats=repeats))
        return [Enqueued(*pair) for pair in zip(reply["job_ids"], reply["created"], strict=True)]

    async def documents(self, ids: Sequence[str]) -> list[Document | None]:
        found: list[Document | None] = []
        for start in range(0, len(ids), AT_A_TIME):
            found += await asyncio.gather(*map(self._document, ids[start : start + AT_A_TIME]))
        return found

    async def ended(self, job_id: str, timeout_s: float) -> str:
        # With very many who wait each polls shortly, so that all have their turn.
        self._polling += 1
        most_s = MOST_POLL_S if self._polling <= MOST_POLLS else 1.0
        try:
            async with self._polls:
                poll_s = round(max(0.0, min(timeout_s, most_s)), 3)
                path = _job(job_id, f"/polling?timeout={poll_s}")
                status, content = await self._send("GET", path, timeout_s=poll_s + 10)
        finally:
            self._polling -= 1
        if status == 408:
            return "waiting"
        return str(replies.document(_checked(status, content))["status"])

    async def result(self, job_id: str) -> bytes | None:
        content = _checked(*await self._send("GET", _job(job_id, "/result")))
        if content != packform.NIL:
            return content
        document = await self._document(job_id)
        if document is None:
            raise NotFound(f"no such job: {job_id}")
        return content if document["keep_result"] else None

    async def cancel(self, ids: Sequence[str], force: bool) -> list[str]:
        return list((await self._ask("POST", "/jobs/cancel", {"ids": list(ids), "force": force}))["jobs"])

    async def retry(self, ids: Sequence[str]) -> list[str]:
        return list((await self._ask("POST", "/jobs/retry", {"ids": list(ids)}))["jobs"])

    async def change(self, changes: Sequence[Prepared]) -> list[str]:
        packed = [
            packform.extend_map(packform.pack(spec), {"argument": argument} if argument else {})
            for spec, argument in changes
        ]
        body = packform.raw_map({"jobs": packform.raw_array(packed)})
        return list(_value(*await self._send("POST", "/jobs/change", body))["jobs"])

    async def explain(self, job_id: str) -> Document:
        return dict(await self._ask("GET", _job(job_id, "/explain")))

    async def history(self, job_id: str) -> Document:
        return dict(await self._ask("GET", _job(job_id, "/history")))

    async def schedule(self, schedule_id: str, job: Prepared, when: Mapping[str, Any]) -> Document:
        body = packform.extend_map(packform.pack({**when, "job": job[0]}), {"argument": job[1]})
        path = f"/schedule/{quote(schedule_id, safe='')}"
        return replies.document(_checked(*await self._send("PUT", path, body)))

    async def schedules(self, schedule_id: str) -> Document | None:
        with contextlib.suppress(NotFound):
            path = f"/schedule/{quote(schedule_id, safe='')}"
            return replies.document(_checked(*await self._send("GET", path)))
        return None

    async def unschedule(self, schedule_id: str) -> None:
        await self._ask("DELETE", f"/schedule/{quote(schedule_id, safe='')}")

    async def constrain(self, constraint_id: str, match: Mapping[str, Any], limits: Mapping[str, Any]) -> Document:
        path = f"/constraint/{quote(constraint_id, safe='')}"
        return dict(await self._ask("PUT", path, {"match": match, **limits}))

    async def unconstrain(self, constraint_id: str) -> None:
        await self._ask("DELETE", f"/constraint/{quote(constraint_id, safe='')}")

    async def constraints(self, cursor: str) -> tuple[str, list[Document]]:
        return await self._page("/constraints", "constraints", cursor)

    async def usage(self, constraint_id: str, cursor: str) -> tuple[str, list[Document]]:
        return await self._page(f"/constraint/{quote(constraint_id, safe='')}/usage", "keys", cursor)

    async def hold(self, constraint_id: str, seconds: float, by: Any) -> int:
        body = {"seconds": seconds} if by is ABSENT else {"seconds": seconds, "by": by}
        path = f"/constraint/{quote(constraint_id, safe='')}/hold"
        return int((await self._ask("POST", path, body))["until_ms"])

    async def queue(self, name: str, changes: Mapping[str, Any]) -> Document:
        return dict(await self._ask("POST", f"/queue/{quote(name, safe='')}", dict(changes)))

    async def pick(self, worker: str, queues: Sequence[str], count: int) -> tuple[bool, list[Job]]:
        body = packform.pack({"worker": worker, "queues": list(queues), "count": count})
        reply = read_map(_checked(*await self._send("POST", "/pick", body, repeats=False)))
        return reply.get("next_ms") == 0, [job_of(fields) for fields in reply["jobs"]]

    async def waiting(self, state: str, cursor: str) -> tuple[str, list[Document]]:
        query = {"status": state, "brief": "true", "count": PAGE, **({"cursor": cursor} if cursor else {})}
        reply = await self._ask("GET", f"/jobs?{urlencode(query)}")
        return str(reply["cursor"]), list(reply["jobs"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _page(self, path: str, items: str, cursor: str) -> tuple[str, list[Document]]:
        query = {"count": PAGE, **({"cursor": cursor} if cursor else {})}
        reply = await self._ask("GET", f"{path}?{urlencode(query)}")
        return str(reply["cursor"]), list(reply[items])

    async def _document(self, job_id: str) -> Document | None:
        status, content = await self._send("GET", _job(job_id))
        if status == 404:
            return None
        # A master shows what there is nothing of as nil; the library's documents are those of the scripts.
        fields = replies.document(_checked(status, content)).items()
        return {name: value for name, value in fields if value is not None and value != packform.NIL}

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return _value(*await self._send(method, path, b"" if body is None else packform.pack(body)))

    async def _send(
        self, method: str, path: str, body: bytes = b"", *, timeout_s: float = TIMEOUT_S, repeats: bool = True
    ) -> tuple[int, bytes]:
        """One request. `repeats`: it does no harm to send it again when the answer was lost."""
        tries = max(2, len(self._urls))
        while True:
            tries -= 1
            url = self._urls[0]
            try:
                return await self._once(method, url + path, body, timeout_s)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if self._urls[0] == url:
                    self._urls.append(self._urls.pop(0))
                was_sent = not isinstance(error, aiohttp.ClientConnectorError)
                is_late = isinstance(error, TimeoutError)
                if not tries or is_late or (was_sent and method == "POST" and not repeats):
                    hint = "; is a master running (jqmaster serve)? JQ_URL names another"
                    reason = str(error) or type(error).__name__
                    raise Unavailable(f"{url} does not answer: {reason}{'' if was_sent else hint}") from error

    async def _once(self, method: str, url: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector)
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        async with self._session.request(method, url, data=body or None, headers=_HEADERS, timeout=timeout) as response:
            return response.status, await response.read()


def _job(job_id: str, rest: str = "") -> str:
    return f"/job/{quote(job_id, safe='')}{rest}"


def _checked(status: int, content: bytes) -> bytes:
    """The answer's body. Raises JQError for an error."""
    if status < 400:
        return content
    try:
        refusal = msgpack.unpackb(content)["error"]
        code, message, field = refusal["code"], refusal["message"], refusal.get("field")
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        code, message, field = "", f"the master answered {status}", None
    if code == NotDurable.code:
        raise NotDurable(message, refusal["job_ids"])
    if status in (502, 503, 504):
        raise Unavailable(message)
    kind = _REFUSALS.get(code, Invalid if status < 500 else Internal)
    raise kind(message.removeprefix(f"{field}: "), field)


def _value(status: int, content: bytes) -> Any:
    content = _checked(status, content)
    # Arguments may hold text that is not UTF-8, and one such job must not hide a whole listing.
    errors = "surrogateescape"
    return msgpack.unpackb(content, strict_map_key=False, unicode_errors=errors) if content else None
