"""Calling the HTTP API in tests: every answer is held against openapi/master.yaml."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import jsonschema_rs
import msgpack
import pytest
import quick_yaml

from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.server.http.app import App
from jqmaster.server.keyring import Keyring
from jqmaster.server.master import Master

MSGPACK = "application/msgpack"
JSON = "application/json"
OPENAPI = Path(__file__).resolve().parents[3] / "openapi"
_MSGPACK_NAMES = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")


def unpack(raw: bytes) -> Any:
    return msgpack.unpackb(raw, strict_map_key=False, timestamp=0)


@cache
def document(name: str = "master") -> dict[str, Any]:
    return dict(quick_yaml.read((OPENAPI / f"{name}.yaml").read_text()))


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([("urn:master", document())], draft=jsonschema_rs.Draft202012)


@cache
def _validator(pointer: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"urn:master#{quote(pointer)}"}, registry=_registry())


def validate(pointer: str, value: Any) -> None:
    """Fail unless a value is of the schema at a JSON pointer of openapi/master.yaml. What JSON has not, such as bytes,
    is taken for an object that nothing describes."""
    plain = json.dumps(value, default=lambda other: {"is": type(other).__name__})
    _validator(pointer).validate(json.loads(plain))


def escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


@cache
def operation(method: str, raw_path: str) -> tuple[str, dict[str, Any]] | None:
    """The template and operation that a request meets, or None."""
    paths = document()["paths"]
    for template in sorted(paths, key=lambda path: path.count("{")):
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, raw_path) and method.lower() in paths[template]:
            return template, paths[template][method.lower()]
    return None


def undocumented(method: str, raw_path: str, status: int) -> bool:
    """405 and 404 are documented for all paths at once, and what becomes of those whose key does not do."""
    return status in (401, 403) or (operation(method, raw_path) is None and status in (404, 405, 413))


def hold_against_document(method: str, raw_path: str, answer: Answer) -> None:
    """Fail unless the document foresees this answer: its status, content type, headers and body."""
    is_too_fast = answer.status == 429 and answer.error["code"] == "RATE"
    is_of_query = answer.status == 400 and "unknown parameter" in answer.error["message"]
    if is_too_fast or is_of_query or undocumented(method, raw_path, answer.status):
        validate("/components/schemas/Error", answer.value)
        return
    found = operation(method, raw_path)
    assert found is not None, f"{method} {raw_path} is not documented, and answered {answer.status}"
    template, described = found
    where = f"/paths/{escape(template)}/{method.lower()}/responses/{answer.status}"
    assert str(answer.status) in described["responses"], f"{where} is not documented: {answer.value}"
    response = described["responses"][str(answer.status)]
    if "$ref" in response:
        where = response["$ref"][1:]
        response = document()["components"]["responses"][where.rsplit("/", 1)[1]]
    for name in response.get("headers", {}):
        assert name.lower() in answer.headers, f"{where}: header {name} is missing"
    content = response.get("content")
    if content is None:
        assert answer.raw == b"" and "content-type" not in answer.headers
        return
    content_type = answer.headers["content-type"]
    listed = MSGPACK if content_type in _MSGPACK_NAMES else content_type
    assert listed in content, f"{where}: {content_type} is not documented"
    validate(f"{where}/content/{escape(listed)}/schema", answer.value)


def hold_request_against_document(method: str, raw_path: str, body: Any) -> None:
    """What was accepted must be what the document describes."""
    found = operation(method, raw_path)
    assert found is not None
    if "requestBody" in found[1]:
        where = f"/paths/{escape(found[0])}/{method.lower()}/requestBody/content/{escape(MSGPACK)}/schema"
        validate(where, body)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def value(self) -> Any:
        content_type = self.headers.get("content-type", "")
        if content_type in _MSGPACK_NAMES:
            return unpack(self.raw)
        if content_type == JSON:
            return json.loads(self.raw)
        if content_type == "application/yaml":
            return quick_yaml.read(self.raw)
        return self.raw.decode()

    @property
    def error(self) -> dict[str, str]:
        return self.value["error"]


def takes_msgpack(described: dict[str, Any]) -> bool:
    """Whether a client may ask for MessagePack there, as all but those of one type of their own."""
    answers = [one for status, one in described["responses"].items() if status[0] == "2"]
    return all(MSGPACK in one.get("content", {MSGPACK: {}}) for one in answers)


@dataclass
class Api:
    """The application, called as Hypercorn would call it."""

    app: Any
    master: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)  # of the jobs that were picked, by id

    async def __call__(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        content_type: str | None = None,
        **headers: str,
    ) -> Answer:
        """Send `body` as MessagePack (as JSON when `content_type` says so), or `raw` as it is."""
        if content_type is None:
            content_type = MSGPACK
        if raw is None and body is not None:
            raw = json.dumps(body).encode() if content_type == JSON else msgpack.packb(body)
        sent = {name.replace("_", "-").lower(): value for name, value in (self.headers | headers).items()}
        found = operation(method, target.partition("?")[0])
        if content_type in _MSGPACK_NAMES and found is not None and takes_msgpack(found[1]):
            sent.setdefault("accept", MSGPACK)
        if raw is not None and content_type:
            sent["content-type"] = content_type
        answer = await asgi(self.app, method, target, sent, raw or b"")
        path = target.partition("?")[0]
        hold_against_document(method, path, answer)
        if answer.status < 300 and body is not None and content_type in _MSGPACK_NAMES:
            hold_request_against_document(method, path, body)
        return answer

    async def get(self, target: str, **headers: str) -> Answer:
        return await self("GET", target, **headers)

    async def post(self, target: str, body: Any = None, **options: Any) -> Answer:
        return await self("POST", target, body, **options)

    async def enqueue(self, name: str = "mail", **fields: Any) -> str:
        answer = await self.post("/job", {"name": name, **fields})
        assert answer.status == 201, answer.value
        job_id: str = answer.value["job_id"]
        return job_id

    async def pick(self, queues: Any = "*", worker: str = "puller", **fields: Any) -> list[dict[str, Any]]:
        answer = await self.post("/pick", {"queues": queues, **fields}, worker_id=worker)
        assert answer.status == 200, answer.value
        jobs: list[dict[str, Any]] = answer.value["jobs"]
        self.tokens |= {job["id"]: job["token"] for job in jobs}
        return jobs

    async def done(self, job: dict[str, Any], worker: str = "puller", **outcome: Any) -> Answer:
        body = {"id": job["id"], "token": job["token"], "type": "success", **outcome}
        return await self.post("/done", {"outcomes": [body]}, worker_id=worker)


async def asgi(
    app: Any, method: str, target: str, headers: dict[str, str], body: bytes = b"", chunks: int = 1, **scope_of: Any
) -> Answer:
    """One request to an ASGI application, its scope as Hypercorn makes it but for what `scope_of` says."""
    path, _, query = target.partition("?")
    sent = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [(b"host", b"jq"), *sent],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
        "extensions": {},
        **scope_of,
    }
    size = max(1, -(-len(body) // chunks))
    pieces = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    incoming = [
        {"type": "http.request", "body": piece, "more_body": index < len(pieces) - 1}
        for index, piece in enumerate(pieces)
    ]
    outgoing: list[Any] = []

    is_over = asyncio.Event()

    async def receive() -> Any:
        if not incoming:
            await is_over.wait()
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        outgoing.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            is_over.set()

    await app(scope, receive, send)
    start = outgoing[0]
    names = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    raw = b"".join(message.get("body", b"") for message in outgoing[1:])
    if "content-length" in names:
        assert int(names["content-length"]) == len(raw) or method == "HEAD"
    return Answer(start["status"], names, raw)


@asynccontextmanager
async def mastering(engine: Engine) -> AsyncIterator[Master]:
    """A master that dispatches nothing."""
    parts = Waiting(engine), Ended(engine)
    yield Master(engine, *parts, Keyring(engine))
    for part in parts:
        await part.stop()


@pytest.fixture
async def master(engine: Engine) -> AsyncIterator[Master]:
    async with mastering(engine) as master:
        yield master


def app_of(master: Master) -> App:
    """It takes no large bodies."""
    app = App(master)
    app.longest = 1 << 20
    return app


@pytest.fixture
async def api(master: Master) -> Api:
    return Api(app_of(master), master)
