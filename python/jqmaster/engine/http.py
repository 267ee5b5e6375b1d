"""The operations by way of a JQ master: the table of operations says what request a call is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgpack

from jqmaster.connection.url import without_password
from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Spec, given, pack
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Document, Enqueued, Picked
from jqmaster.errors import (
    Conflict,
    Expired,
    Forbidden,
    Full,
    Internal,
    Invalid,
    JQError,
    Lost,
    NotDurable,
    NotFound,
    TooFast,
    Unauthorized,
    Unavailable,
)
from jqmaster.wire import packform
from jqmaster.wire.credentials import shown
from jqmaster.wire.message import MSGPACK
from jqmaster.wire.operation import Field, Operation
from jqmaster.wire.operations import OPERATIONS

TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
SILENCE_S = 60.0  # a master that has nothing to send says so every 15 seconds
AT_A_TIME = 32  # requests about one job each
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
_REFUSALS: dict[str, type[JQError]] = {
    kind.code: kind for kind in (Invalid, NotFound, Conflict, Expired, Lost, Full, Unauthorized, Forbidden, TooFast)
}
_ONCE = ("register", "kick", "retry", "discard", "grant")  # a second time does or says something else
_NIL_FOR_NOTHING = ("worker_id", "result", "error", "message")
_ABSENT: Any = object()


class HttpEngine(Operations):
    """Asks the first of `urls`; when it does not answer, the next one from then on.

    Raises what `jqmaster.errors` has. Operations for which there is no request raise Unavailable.
    """

    def __init__(self, urls: Sequence[str], key: str | None = None) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._sent_always = shown(key)
        self._session: aiohttp.ClientSession | None = None

    async def call(self, operation: str, *arguments: Argument) -> Any:
        request = _request(operation, arguments)
        if request is None:
            several = _apart(operation, arguments)
            if several is None:
                kind = Invalid if operation in _BY_SCRIPT else Unavailable
                raise kind(f"{operation}: a master has no request for {_told(arguments)}")
            found = await _together([self.call(operation, *one) for one in several])
            documents = [answer for one in found for answer in (one[1:] if operation in _PAGES else one)]
            return [b"", *documents] if operation in _PAGES else documents
        known, path, body, headers = request
        try:
            repeats = known.script not in _ONCE
            sent = await self.send(known.method, path, body, headers={**_HEADERS, **headers}, repeats=repeats)
            content = checked(*sent)
        except NotFound:
            if known.reply.shape == "first":
                return [b""]
            if known.reply.shape == "state" and known.script == "track":
                return [None]
            raise
        return _reply(known, content)

    # -- operations whose request the table does not tell ----------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[tuple[Spec, bytes]], *, request: str | None = None, durable: Durable | None = None
    ) -> list[Enqueued]:
        asked = {} if durable is None else {"durable": asdict(durable)}
        bodies = [
            packform.extend_map(pack({**spec, **asked}, f"jobs[{index}]"), {"argument": argument})
            for index, (spec, argument) in enumerate(jobs)
        ]
        if len(bodies) == 1 and request is None:
            # Masters put those that come one by one together.
            status, content = await self.send("POST", "/job", bodies[0], repeats=False)
            return [Enqueued(str(_value(status, content)["job_id"]), status == 201)]
        body = {"jobs": packform.raw_array(bodies)}
        if request is not None:
            body["request"] = packform.pack(request)
        status, content = await self.send("POST", "/jobs", packform.raw_map(body), repeats=request is not None)
        reply = _value(status, content)
        return [Enqueued(*pair) for pair in zip(reply["job_ids"], reply["created"], strict=True)]

    async def change(self, changes: Sequence[tuple[Spec, bytes]]) -> list[str]:
        jobs = [
            packform.extend_map(pack(spec, f"jobs[{index}]"), {"argument": argument} if argument else {})
            for index, (spec, argument) in enumerate(changes)
        ]
        content = await self.ask("POST", "/jobs/change", packform.raw_map({"jobs": packform.raw_array(jobs)}))
        return list(_value(200, content)["jobs"])

    async def get(self, *ids: str) -> list[Document | None]:
        return await _together([self._get(one) for one in ids])

    async def _get(self, job_id: str) -> Document | None:
        try:
            content = await self.ask("GET", _path("get", id=job_id))
        except NotFound:
            return None
        # A master shows some of what there is nothing of as nil; these documents are those of the script.
        found = replies.document(content)
        for name in _NIL_FOR_NOTHING:
            if found[name] in (None, packform.NIL):
                del found[name]
        return found

    async def result(self, job_id: str) -> tuple[str, bytes | None]:
        try:
            return "done", await self.ask("GET", _path("result", id=job_id))
        except Conflict:
            document = await self._get(job_id)
        if document is None:
            raise NotFound(f"no such job: {job_id}")
        if document["status"] == "done" and document["keep_result"]:  # it ended meanwhile
            return "done", await self.ask("GET", _path("result", id=job_id))
        return document["status"], None

    async def tags(
        self, *, cursor: str | None = None, count: int | None = None, top: int | None = None
    ) -> tuple[str, list[tuple[str, int]]]:
        query = urlencode(given(cursor=cursor or None, count=count, top=top))
        reply = _value(200, await self.ask("GET", f"/tags?{query}"))
        return reply["cursor"], [(one["tag"], one["count"]) for one in reply["tags"]]

    async def config(self, set: Spec | None = None) -> Document:
        method, body = ("GET", b"") if set is None else ("PATCH", pack(set))
        return replies.plain_document(await self.ask(method, "/config", body))

    async def describe(self) -> list[Document]:
        return list(_value(200, await self.ask("GET", "/config?describe=1"))["settings"])

    async def grant(
        self, name: str, roles: Sequence[str], *, queues: Sequence[str] | None = None, ttl: float | None = None,
        rate: float | None = None,
    ) -> Document:  # fmt: skip
        fields = given(
            name=name, roles=list(roles), queues=None if queues is None else list(queues), ttl=ttl, rate=rate
        )
        status, content = await self.send("POST", "/keys", pack(fields), repeats=False)
        return replies.plain_document(checked(status, content))

    async def pick(self, worker: str, queues: str | Sequence[str], count: int = 1, **options: Any) -> Picked:
        body = pack(given(worker=worker, queues=queues, count=count, **options))
        status, content = await self.send("POST", "/pick", body, repeats=False)
        found = _parts(checked(status, content))
        jobs = [replies.document(content[start:end]) for start, end in found["jobs"]]
        next_ms = msgpack.unpackb(content[slice(*found["next_ms"])]) if "next_ms" in found else -1
        return Picked(next_ms, [replies.job_of(fields, fields.pop("argument")) for fields in jobs])

    # -- requests ----------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The body of an answer. Raises JQError for an error."""
        return checked(*await self.send(method, path, body))

    async def send(
        self, method: str, path: str, body: bytes = b"", *, timeout_s: float = TIMEOUT_S, repeats: bool = True,
        headers: Mapping[str, str] = _HEADERS,
    ) -> tuple[int, bytes]:  # fmt: skip
        """One request: status and body. `repeats`: it does no harm to send it again when the answer was lost."""
        tries = max(2, len(self._urls))
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        while True:
            tries -= 1
            url = self._urls[0]
            try:
                async with self._connected().request(
                    method, url + path, data=body or None, headers=headers, timeout=timeout
                ) as response:
                    return response.status, await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if self._urls[0] == url:
                    self._urls.append(self._urls.pop(0))
                was_sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
                is_late = was_sent and isinstance(error, TimeoutError)
                if not tries or is_late or (was_sent and method == "POST" and not repeats):
                    raise _away(url, error, "" if was_sent else "; is a master running (jqmaster serve)?") from error

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """An answer that goes on. Raises Unavailable when it is cut off."""
        url = self._urls[0]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=SILENCE_S)
        try:
            async with self._connected().get(url + path, headers=headers, timeout=timeout) as response:
                if response.status >= 400:
                    checked(response.status, await response.read())
                yield response.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _away(url, error, "; the stream was cut off") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector, headers=self._sent_always)
        return self._session


def _away(url: str, error: Exception, hint: str) -> Unavailable:
    return Unavailable(f"{without_password(url)} does not answer: {str(error) or type(error).__name__}{hint}", error)


async def _together(asked: Sequence[Any]) -> list[Any]:
    """What each gives, some at a time."""
    found: list[Any] = []
    for start in range(0, len(asked), AT_A_TIME):
        found += await asyncio.gather(*asked[start : start + AT_A_TIME])
    return found


# -- from a call to a request ------------------------------------------------------------------------------------

_BY_SCRIPT: dict[str, list[Operation]] = {}
for _one in OPERATIONS.values():
    if _one.reply.shape != "own":
        _BY_SCRIPT.setdefault(_one.script, []).append(_one)
for _several in _BY_SCRIPT.values():
    _several.sort(key=lambda one: one.reply.shape in ("first", "state", "nothing"))  # many before one
_PAGES = frozenset(name for name, several in _BY_SCRIPT.items() if any(one.reply.shape == "first" for one in several))


def _request(script: str, arguments: Sequence[Argument]) -> tuple[Operation, str, bytes, dict[str, str]] | None:
    """The operation that has a place for all that the script is told; its path and query, body and headers."""
    for operation in _BY_SCRIPT.get(script, ()):
        spec, values = _read(operation, arguments)
        placed: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "body": {}}
        for field in operation.fields:
            value = values.pop(0) if field.type.kind == "value" and values else _taken(spec, field.to)
            if value is not _ABSENT and value != b"":
                placed[field.place][field.name] = _shown(field, value)
        if {**spec} == dict(operation.fixed) and all(field.name in placed["path"] for field in operation.at("path")):
            query = urlencode(placed["query"])
            path = _filled(operation.path, placed["path"]) + (f"?{query}" if query else "")
            body = packform.raw_map(placed["body"]) if operation.takes_body else b""
            return operation, path, body, placed["header"]
    return None


def _told(arguments: Sequence[Argument]) -> str:
    try:
        return str(msgpack.unpackb(arguments[0], strict_map_key=False))[:200]
    except (IndexError, TypeError, ValueError, msgpack.UnpackException):
        return "it"


def _read(operation: Operation, arguments: Sequence[Argument]) -> tuple[dict[str, Any], list[Any]]:
    if operation.bare:
        return {"id": arguments[0]}, []
    spec: dict[str, Any] = msgpack.unpackb(arguments[0], strict_map_key=False) if arguments else {}
    return spec, list(arguments[1:])


def _taken(spec: dict[str, Any], to: str) -> Any:
    """Take out of a spec what stands at a place such as `where.queue` or `ids[0]`."""
    name, _, rest = to.partition(".")
    if rest:
        inner = spec.get(name)
        if not isinstance(inner, dict):
            return _ABSENT
        value = _taken(inner, rest)
        if not inner:
            del spec[name]
        return value
    if to.endswith("[0]"):
        listed = spec.get(to[:-3])
        return spec.pop(to[:-3])[0] if isinstance(listed, list) and len(listed) == 1 else _ABSENT
    return spec.pop(to, _ABSENT) if to else _ABSENT


def _shown(field: Field, value: Any) -> Any:
    """As it goes into its part of the request."""
    if field.place == "body":
        return value if field.type.kind == "value" else packform.pack(value)
    if field.type.kind == "flag":
        return "1" if value else "0"
    return ",".join(value) if isinstance(value, list) else value


def _filled(path: str, segments: Mapping[str, Any]) -> str:
    for name, value in segments.items():
        if value in (".", ".."):
            raise Invalid(f"{value!r} cannot stand in a URL: use Redis itself for it", name)
    return path.format_map({name: quote(str(value), safe="") for name, value in segments.items()})


def _path(operation: str, **segments: str) -> str:
    return _filled(OPERATIONS[operation].path, segments)


def _apart(script: str, arguments: Sequence[Argument]) -> list[list[Argument]] | None:
    """The calls for one id each that a call for many comes to, where only one can be asked for at a time."""
    if script not in _BY_SCRIPT or not arguments:
        return None
    spec: Any = msgpack.unpackb(arguments[0], strict_map_key=False)
    for name in ("ids", "names"):
        listed = spec.get(name) if isinstance(spec, dict) else None
        if isinstance(listed, list) and len(listed) != 1:
            return [[pack({**spec, name: [one]})] for one in listed]
    return None


# -- from an answer to a reply -----------------------------------------------------------------------------------


def _reply(operation: Operation, content: bytes) -> Any:
    """What the script has answered."""
    shape, names = operation.reply.shape, operation.reply.names
    if shape == "document":
        return content
    if shape == "first":
        return [b"", content]
    if shape in ("page", "list"):
        found = _parts(content)
        documents = [content[start:end] for start, end in found[names[0]]]
        return documents if shape == "list" else [msgpack.unpackb(content[slice(*found["cursor"])]), *documents]
    value = _value(200, content)
    if shape == "state":
        return [value["status"]] if operation.fields[0].to == "ids[0]" else value["status"]
    if shape == "states":
        return value["jobs"] if "jobs" in value else [value["cursor"], value["changed"]]
    if shape == "values":
        return value[names[0]] if len(names) == 1 else [value[name] for name in names]
    return None


def _parts(content: bytes) -> dict[str, Any]:
    """Where the values of a map stand; of a list the places of its items."""
    unpacker = msgpack.Unpacker(None, max_buffer_size=max(1, len(content)))
    unpacker.feed(content)
    found: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name, start = unpacker.unpack(), unpacker.tell()
        if packform.kind_of(content, start) != "array":
            unpacker.skip()
            found[name] = start, unpacker.tell()
            continue
        found[name] = []
        for _item in range(unpacker.read_array_header()):
            start = unpacker.tell()
            unpacker.skip()
            found[name].append((start, unpacker.tell()))
    return found


def checked(status: int, content: bytes) -> bytes:
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
    content = checked(status, content)
    # Arguments may hold text that is not UTF-8, and one such job must not hide a whole listing.
    errors = "surrogateescape"
    return msgpack.unpackb(content, strict_map_key=False, unicode_errors=errors) if content else {}
