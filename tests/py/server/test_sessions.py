"""Sessions of the web UI, and users whom a proxy knows."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from http.cookies import SimpleCookie
from typing import Any

import pytest
from itsdangerous import TimestampSigner

from http_support import JSON, Answer, Api, api, asgi, master  # noqa: F401
from jqmaster.server.http.access import COOKIE, IDLE_S
from jqmaster.server.keyring import Keyring
from keys_support import Keyed, keyed  # noqa: F401
from parts import export_records
from settable import SettableEngine  # noqa: F401

PEERS = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/64"))


def cookie_of(answer: Answer) -> Any:
    return SimpleCookie(answer.headers["set-cookie"])[COOKIE]


async def log_in(keyed: Keyed, *roles: str, **more: Any) -> tuple[dict[str, Any], Api]:
    """A key's document, and the API with the cookie that it gets."""
    key = await keyed.create(*roles, **more)
    answer = await keyed.api.post("/session", {"key": key["key"]})
    assert answer.status == 200, answer.value
    return key, Api(keyed.api.app, keyed.api.master, {"cookie": f"other=1; {COOKIE}={cookie_of(answer).value}"})


async def test_without_keys_everybody_is_admin(keyed: Keyed) -> None:
    told = (await keyed.api.get("/session")).value
    assert (told["asks"], told["session"], told["queues"]) == (False, False, None)
    assert told["roles"] == ["viewer", "pusher", "worker", "operator", "admin"]


async def test_a_session_is_as_good_as_its_key(keyed: Keyed) -> None:
    key, ui = await log_in(keyed, "operator", name="ann")
    told = (await ui.get("/session")).value
    assert told.pop("master")["namespace"] == keyed.engine.namespace
    assert told == {
        "name": "ann", "roles": ["viewer", "operator"], "queues": None, "refused": ["/keys"],
        "asks": True, "session": True,
    }  # fmt: skip
    assert (await ui.get("/queues")).status == 200
    assert (await ui.post("/queue/mail", {"paused": True})).status == 200
    assert (await ui.get("/keys")).status == 403
    assert (await keyed.api.get("/queues")).status == 401
    [entry] = [one for one in (await ui.get("/trail")).value["trail"] if one["what"] == "queue"]
    assert entry["actor"] == "ann"
    assert (await keyed.as_key(key["key"]).get("/session")).value["session"] is False


async def test_the_cookie_is_for_this_server_alone(keyed: Keyed) -> None:
    key = await keyed.create("viewer")
    cookie = cookie_of(await keyed.api.post("/session", {"key": key["key"]}))
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["secure"]) == (True, "Strict", "/", "")
    assert key["key"][16:] not in cookie.value
    answer = await asgi(
        keyed.api.app, "POST", "/session", {"content-type": "application/json"},
        b'{"key": "%s"}' % key["key"].encode(), scheme="https",
    )  # fmt: skip
    assert cookie_of(answer)["secure"] is True


async def test_it_ends_when_the_key_expires(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    _key, ui = await log_in(keyed, "viewer", ttl=600)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 590)
    assert (await ui.get("/queues")).status == 200
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert (await ui.get("/queues")).status == 401


async def test_it_ends_when_nobody_uses_it(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    _key, ui = await log_in(keyed, "viewer")
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began - 5)  # as a master has it whose clock is late
    assert (await ui.get("/queues")).status == 200
    monkeypatch.setattr(time, "time", lambda: began + IDLE_S - 5)
    renewed = cookie_of(await ui.get("/session")).value
    monkeypatch.setattr(time, "time", lambda: began + IDLE_S + 5)
    assert (await ui.get("/queues")).status == 401
    again = Api(keyed.api.app, keyed.api.master, {"cookie": f"{COOKIE}={renewed}"})
    assert (await again.get("/queues")).status == 200


async def test_what_is_no_session_lets_nobody_in(keyed: Keyed) -> None:
    _key, ui = await log_in(keyed, "viewer", name="ann")
    good = ui.headers["cookie"].partition(f"{COOKIE}=")[2]
    key_id, until_s, seal = good.split(".")
    other = await keyed.create("admin")
    for bad in (
        "", "x", "..", f"{key_id}.{until_s}", f"{key_id}.{until_s}.", f"{key_id}.{until_s}A.{seal}",
        f"{other['id']}.{until_s}.{seal}", f"{key_id}.{until_s}.{'0' * 64}", f"{key_id}.x.{seal}", f"{good}.1", "é.1.2",
    ):  # fmt: skip
        trial = Api(keyed.api.app, keyed.api.master, {"cookie": f"{COOKIE}={bad}"})
        assert (await trial.get("/queues")).status == 401, bad
    for key in ("jq_x", "", key_id, f"jq_{key_id}_{'A' * 43}"):
        assert (await keyed.api.post("/session", {"key": key})).status == 401 if key else 400
    for body in ({}, {"key": {1: 2}}, {"key": None}):
        assert (await keyed.api.post("/session", body)).status == 400, body


async def test_what_redis_tells_of_a_key_makes_no_session(keyed: Keyed) -> None:
    await log_in(keyed, "admin")
    engine = keyed.engine
    seal = await engine.redis.get(f"{engine.namespace}/sessions")
    assert len(seal) == 32
    exported = [record async for record in export_records(engine)]
    assert not any(seal in record for record in exported)
    [document] = (await engine.keys(digests=True)).documents
    for known in (document["digest"].encode(), b"", b"".join(exported)):
        signer = TimestampSigner(known, salt="jq session", digest_method=hashlib.sha256)
        forged = signer.sign(document["id"]).decode()
        trial = Api(keyed.api.app, keyed.api.master, {"cookie": f"jq_session={forged}"})
        assert (await trial.get("/queues")).status == 401


async def test_it_holds_at_every_master_and_after_a_restart(keyed: Keyed) -> None:
    _key, ui = await log_in(keyed, "viewer")
    keyed.api.master.keyring = Keyring(keyed.engine)
    assert (await ui.get("/session")).value["session"] is True


async def test_logging_out_takes_the_cookie_back(keyed: Keyed) -> None:
    _key, ui = await log_in(keyed, "viewer")
    answer = await ui("DELETE", "/session")
    assert answer.status == 204
    assert (cookie_of(answer).value, cookie_of(answer)["max-age"]) == ("", "0")


async def test_another_site_cannot_use_it(keyed: Keyed) -> None:
    _key, ui = await log_in(keyed, "operator")
    assert (await ui.post("/queue/mail", {"paused": True}, origin="https://elsewhere.example")).status == 403


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("10.1.2.3", {"x-forwarded-user": "ann"}, 200),
        ("fd00::5", {"x-forwarded-user": "ann", "x-forwarded-roles": "Viewer, unknown"}, 200),
        ("10.1.2.3", {"x-forwarded-user": "ann", "x-forwarded-roles": "pusher"}, 403),
        ("10.1.2.3", {"x-forwarded-user": "ann", "x-forwarded-roles": "root"}, 403),
        ("10.1.2.3", {"x-forwarded-roles": "admin"}, 401),
        ("10.1.2.3", {}, 401),
        ("10.2.0.1", {"x-forwarded-user": "ann", "x-forwarded-roles": "admin"}, 401),
        ("unix", {"x-forwarded-user": "ann"}, 401),
    ],
)
async def test_only_a_trusted_proxy_says_who_somebody_is(
    keyed: Keyed, client: str, headers: dict[str, str], status: int
) -> None:
    keyed.api.master.proxies = PEERS
    keyed.api.master.keyring.is_required = True
    answer = await asgi(keyed.api.app, "GET", "/queues", headers, client=(client, 1))
    assert answer.status == status


async def test_whom_a_proxy_names_without_roles_may_only_look(keyed: Keyed) -> None:
    keyed.api.master.proxies = PEERS
    keyed.api.master.keyring.is_required = True
    for method, path, status in (
        ("GET", "/queues", 200),
        ("POST", "/queue/mail", 403),
        ("GET", "/keys", 403),
    ):
        answer = await asgi(keyed.api.app, method, path, {"x-forwarded-user": "ann"}, client=("10.1.2.3", 1))
        assert answer.status == status, path


@pytest.mark.parametrize("user", ["Jos\u00e9", "\u00e9" * 99])
async def test_a_user_may_have_any_letters(keyed: Keyed, user: str) -> None:
    keyed.api.master.proxies = PEERS
    keyed.api.master.keyring.is_required = True
    headers = {"x-forwarded-user": user, "x-forwarded-roles": "operator"}
    assert (
        await asgi(keyed.api.app, "POST", "/queue/mail", headers, b"\x81\xa6paused\xc3", client=("10.1.0.1", 1))
    ).status == 200
    assert (await keyed.engine.trail()).documents[0]["actor"] == user[:50]


async def test_a_user_whom_the_trail_cannot_hold_is_nobody(keyed: Keyed) -> None:
    keyed.api.master.proxies = PEERS
    keyed.api.master.keyring.is_required = True
    headers = {"x-forwarded-user": "an\tn", "x-forwarded-roles": "operator"}
    assert (
        await asgi(keyed.api.app, "POST", "/queue/mail", headers, b"\x81\xa6paused\xc3", client=("10.1.0.1", 1))
    ).status == 401
