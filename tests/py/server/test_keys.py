"""Keys of the HTTP API: who may do what."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import msgpack
import pytest

from http_support import Answer, Api, master
from jqmaster.engine import secret
from jqmaster.engine.calling import pack
from jqmaster.manifest.contract import ANYBODY, ROLES
from jqmaster.server.http.app import SMALL
from jqmaster.server.http.routes import ROUTES, Route
from jqmaster.server.keyring import covers
from keys_support import Keyed, keyed

__all__ = ["keyed", "master"]

UNKNOWN = "00000000000001"
# What a request needs before its role is looked at: the least that a server can route.
IN_PATH = {"id": UNKNOWN, "name": "q", "key": "k"}


def target(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: IN_PATH.get(found[1], "q"), route.path)


async def ask(
    api: Api, route: Route, headers: dict[str, str], *, body: bytes | None = b"\x80"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and the first piece of an answer: some go on for ever. What is sent is refused after the
    role is looked at, if at all. `body`: None for one that does not come."""
    sent = [(b"host", b"jq"), (b"content-type", b"application/nonsense")]
    sent += [(name.encode(), value.encode()) for name, value in headers.items()]
    path = target(route)
    scope = {"type": "http", "http_version": "1.1", "asgi": {"version": "3.0"}, "method": route.method,
             "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
             "headers": sent, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "state": {},
             "extensions": {}}  # fmt: skip
    answered: asyncio.Queue[Any] = asyncio.Queue()
    read = [] if body is not None else [1]

    async def receive() -> Any:
        if not read:
            read.append(1)
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.Event().wait()

    task = asyncio.create_task(api.app(scope, receive, answered.put))
    start = await answered.get()
    told = (await answered.get()).get("body", b"") if start["status"] >= 400 else b""
    task.cancel()
    await asyncio.wait({task})
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, told


class TestRoles:
    @pytest.mark.parametrize("role", ROLES)
    async def test_each_request_is_for_whom_its_head_says(self, keyed: Keyed, role: Any) -> None:
        api = await keyed.grant(role)
        for route in ROUTES:
            status, _, body = await ask(api, route, api.headers)
            needed = route.operation.lacking(frozenset((role,)))
            may = not needed
            assert status != 401, route.path
            assert (status == 403) == (not may), (route.method, route.path, status, body)
            if not may:
                assert " or ".join(needed).encode() in body, route.path

    async def test_what_each_role_is_for(self, keyed: Keyed) -> None:
        for role, may, may_not in (
            ("viewer", "GET /jobs", "POST /job"), ("pusher", "POST /job", "GET /jobs"),
            ("worker", "POST /pick", "GET /jobs"), ("operator", "GET /jobs", "POST /job"),
            ("admin", "GET /keys", ""),
        ):  # fmt: skip
            api = await keyed.grant(role)
            assert (await api(*may.split())).status in (200, 400), may
            assert not may_not or (await api(*may_not.split())).status == 403, may_not

    @pytest.mark.parametrize("shown", ["", "Bearer nonsense", "Basic amE6amI="], ids=str)
    async def test_none_is_for_who_shows_none(self, keyed: Keyed, shown: str) -> None:
        api = await keyed.grant("admin")
        for route in ROUTES:
            status, headers, _ = await ask(api, route, {"authorization": shown} if shown else {})
            if route.operation.name in ("log_in", "log_out"):
                assert status in (204, 415), route.path
            elif route.operation.roles == (ANYBODY,) and route.path != "/session":
                assert status == 200, route.path
            else:
                assert (status, headers["www-authenticate"][:17]) == (401, 'Bearer realm="jq"'), route.path


class TestAuthentication:
    async def test_nobody_is_asked_while_there_is_no_key(self, keyed: Keyed) -> None:
        await keyed.api.enqueue("a")
        api = await keyed.grant("viewer")
        assert (await keyed.api.get("/jobs")).status == 401
        assert (await api.get("/jobs")).status == 200

    async def test_it_stays_closed_when_the_last_key_is_revoked(self, keyed: Keyed) -> None:
        key = await keyed.create("admin")
        await keyed.engine.revoke(key["id"])
        await keyed.api.master.keyring.look()
        assert (await keyed.api.get("/jobs")).status == 401
        assert (await keyed.as_key(key["key"]).get("/jobs")).error["code"] == "UNAUTHORIZED"

    async def test_a_key_is_checked_whole(self, keyed: Keyed) -> None:
        key = (await keyed.create("admin"))["key"]
        other = (await keyed.create("admin"))["key"]
        head, last = key[:15], key[16:]
        for wrong in (
            key[:-1], key + "A", key.upper(), f"{head}_{last[::-1]}", head + other[15:], "jq__", "é" * 5,
            f"{head}_{secret.digest_of(last)}",  # all that Redis has of it
        ):  # fmt: skip
            answer = await keyed.api.get("/jobs", authorization=f"Bearer {wrong}")
            assert (answer.status, answer.error["code"]) == (401, "UNAUTHORIZED"), wrong
            assert wrong not in answer.error["message"]
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert (await keyed.api.get("/jobs", authorization=f"{scheme} {key}")).status == 200
        assert (await keyed.api.get("/jobs", authorization=key)).status == 401

    async def test_what_anybody_may_send_is_small(self, keyed: Keyed) -> None:
        key = await keyed.create("admin")
        raw = msgpack.packb({"key": key["key"], "more": "x" * SMALL})
        assert (await keyed.api.post("/session", raw=raw)).status == 413
        assert await keyed.as_key(key["key"]).enqueue("a", argument="x" * SMALL)

    async def test_a_key_expires(self, keyed: Keyed) -> None:
        made = await keyed.engine.grant("brief", ["viewer"], ttl=1)
        lasting, brief = await keyed.grant("viewer", ttl=600), keyed.as_key(made["key"])
        await asyncio.sleep(1.2)
        assert [(await one.get("/jobs")).status for one in (lasting, brief)] == [200, 401]

    async def test_the_secret_is_in_no_log_and_in_no_answer(
        self, keyed: Keyed, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        made = await keyed.create("admin", name="ann")
        api = keyed.as_key(made["key"])
        answers: list[Answer] = [await api.get("/keys"), await api.get("/trail"), await api.get("/job/x")]
        answers.append(await api.post("/keys", {"name": "bob", "roles": ["nobody"]}))
        created = await api.post("/keys", {"name": "bob", "roles": ["viewer"]})
        assert created.status == 200
        secrets = [one.split("_", 2)[2] for one in (made["key"], created.value["key"])]
        digests = [secret.digest_of(one) for one in secrets]
        for text in [*(answer.raw.decode("latin-1") for answer in answers), caplog.text]:
            assert not any(one in text for one in (*secrets, *digests))
        assert (made["id"], "ann") in {(one.key, one.who) for one in caplog.records if one.name == "jqmaster.request"}
        assert secrets[0] not in repr(keyed.api.master.keyring.find(made["key"]))
        new = secret.new()
        assert new.text.split("_", 2)[2] not in repr(new)

    async def test_more_requests_than_a_key_may_make_are_refused(self, keyed: Keyed) -> None:
        api = await keyed.grant("viewer", rate=2)
        assert [(await api.get("/jobs")).status for _ in range(2)] == [200, 200]
        while (refused := await api.get("/jobs")).status != 429:
            pass  # there was a pause, which allows for more
        assert refused.error["code"] == "RATE" and refused.headers["retry-after"] == "1"
        await asyncio.sleep(0.6)
        assert (await api.get("/jobs")).status == 200
        slow = await keyed.grant("viewer", rate=0.01)
        assert (await slow.get("/jobs")).status == 200
        assert int((await slow.get("/jobs")).headers["retry-after"]) in range(50, 101)

    async def test_one_that_comes_back_with_less_may_do_less(self, keyed: Keyed) -> None:
        made = await keyed.create("admin")
        api, keyring = keyed.as_key(made["key"]), keyed.api.master.keyring
        assert (await api.get("/keys")).status == 200
        _, text = secret.split(made["key"])
        spec = {"id": made["id"], "digest": secret.digest_of(text), "name": "somebody", "roles": ["viewer"]}
        await keyed.engine.revoke(made["id"])
        await keyed.engine.raw("grant", pack(spec))
        await keyring.look()  # it sees both at once
        assert (await api.get("/jobs")).status == 200
        assert (await api.get("/keys")).status == 403

    async def test_the_last_use_is_noted(self, keyed: Keyed) -> None:
        key = await keyed.create("admin")
        await keyed.as_key(key["key"]).get("/jobs")
        [document] = (await keyed.engine.keys()).documents
        assert document["used_ms"] >= document["created_ms"]


class TestQueues:
    """A key that is bound to queues."""

    @pytest.mark.parametrize(
        ("pattern", "text", "fits"),
        [("a", "a", True), ("a", "b", False), ("a", "a*", False), ("*", "x", True), ("*", "*", True), ("a*", "a", True),
         ("a*", "*", False), ("a*b", "ab", True), ("a*b", "a*b", True), ("a*b", "aXbY", False), ("a*a", "a", False),
         ("*a*", "*", False), ("m*.de", "mail.de", True), ("m*.de", "m*.d*", False), ("", "", True),
         ("a**b", "ab", True), ("*x", "x*", False), ("a[bc]", "ab", False), ("a[b]*", "a[b]d", True)],
    )  # fmt: skip
    def test_a_pattern_covers_what_fits_it_and_narrower_patterns(self, pattern: str, text: str, fits: bool) -> None:
        assert covers(pattern, text) is fits


class TestTrail:
    async def test_it_has_whose_key_it_was(self, keyed: Keyed) -> None:
        await keyed.api.post("/queue/a", {"paused": True})
        first = await keyed.create("admin", name="ann")
        api = keyed.as_key(first["key"])
        await api.post("/queue/a", {"paused": False})
        await api.post("/call/queue", raw=msgpack.packb([msgpack.packb({"name": "b", "paused": True, "actor": "bob"})]))
        trail = (await api.get("/trail")).value["trail"]
        assert [(one["actor"], one["what"], one.get("on")) for one in trail] == [
            ("ann", "queue", "b"), ("ann", "queue", "a"), ("", "grant", first["id"]), ("anonymous", "queue", "a"),
        ]  # fmt: skip
        assert trail[-1]["change"] == {"paused": True}
