"""Keys that are bound to queues, and what is kept from roles: by the heads of scripts."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from http_support import master
from jqmaster.manifest.contract import ANYBODY, SERVER
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.routes import ROUTES
from keys_support import Keyed, keyed
from test_keys import ask

__all__ = ["keyed", "master"]


async def test_both_queues_must_be_within_the_key(keyed: Keyed) -> None:
    api = await keyed.grant("viewer", "pusher", "operator", queues=["mail.*"])
    mine, other = [one.id for one in await keyed.engine.enqueue([({"name": n}, b"\xc0") for n in ("mail.de", "other")])]
    for job_id, queue, status in ((mine, "other", 403), (other, "mail.jp", 403), (mine, "mail.jp", 200)):
        assert (await api("PATCH", f"/job/{job_id}", {"queue": queue})).status == status, (job_id, queue)
        many = [{"id": mine, "priority": 1}, {"id": job_id, "queue": queue}]
        assert (await api.post("/jobs/change", {"jobs": many})).status == status, (job_id, queue)
        assert (await api.post("/jobs/change", many)).status == 400, (job_id, queue)
    assert [doc["queue"] for doc in await keyed.engine.get([mine, other])] == ["mail.jp", "other"]
    await keyed.engine.cancel([mine, other])
    for job_id, queue, status in ((mine, "other", 403), (other, "mail.de", 403), (mine, "mail.de", 200)):
        answer = await api.post("/jobs/retry", {"ids": [job_id], "queue": queue})
        assert answer.status == status, (job_id, queue)
        await keyed.engine.cancel([mine])
        assert (await api.post(f"/job/{job_id}/retry", {"queue": queue})).status == status, (job_id, queue)
        await keyed.engine.cancel([mine])
    for where, queue, status in (("mail.de", "other", 403), ("other", "mail.de", 403), ("mail.de", "mail.x", 200)):
        answer = await api.post("/jobs/retry", {"where": {"queue": where}, "queue": queue})
        assert answer.status == status, (where, queue)
    assert [doc["queue"] for doc in await keyed.engine.get([mine, other])] == ["mail.x", "other"]


async def test_the_overview_tells_of_its_queues(keyed: Keyed) -> None:
    api = await keyed.grant("viewer", queues=["mail.*"])
    for name in ("mail.de", "report"):
        await keyed.engine.queue(name, paused=True)
        await keyed.engine.enqueue([({"name": name}, b"\xc0")])
    found = (await api.get("/overview")).value
    assert found["totals"]["queued"] == 1 and found["queues"]["top"] == ["mail.de"]
    assert [alert["queue"] for alert in found["alerts"]] == ["mail.de"]
    for path, status in (("/queue/mail.de", 200), ("/stats?by=day&queue=mail.de", 200), ("/queue/report", 403)):
        assert (await api.get(path)).status == status, path


async def test_every_operation_is_refused_unless_it_is_known_to_be_within(keyed: Keyed) -> None:
    api = await keyed.grant("admin", queues=["elsewhere"])
    await keyed.engine.queue("q")
    for route in ROUTES:
        if route.path.startswith("/job/") or route.takes_body or route.operation.roles == (ANYBODY,):
            continue  # asked about above: of an unknown job; the body cannot be read
        status, _, body = await ask(api, route, api.headers)
        assert status == 403 or route.operation.name in ("config", "unregister", "overview"), (route.path, status, body)


async def test_calls_are_refused_unless_they_name_its_queues(keyed: Keyed) -> None:
    api = await keyed.grant("admin", queues=["mine"])
    for name in [name for name, one in operations().items() if one.roles != (SERVER,)]:
        if operations()[name].positions[:1] not in (("spec",), ("[spec]",), ()):
            continue  # what is no id is no job of another queue
        spec = msgpack.packb({})
        answer = await api.post(f"/call/{name}", raw=msgpack.packb([spec] if operations()[name].positions else []))
        is_free = operations()[name].is_free
        assert answer.status == 403 or (is_free and answer.status in (200, 400)), (name, answer.value)
        for argument in operations()[name].arguments:
            if argument.type in ("queue", "list<queue>"):
                spec = msgpack.packb({argument.name: "other"})
                answer = await api.post(f"/call/{name}", raw=msgpack.packb([spec]))
                assert answer.status == 403, (name, argument.name)


@pytest.mark.parametrize("path", ["cancel", "retry", "discard", "kick"])
async def test_text_that_is_no_utf8_is_refused_as_for_others(keyed: Keyed, path: str) -> None:
    for more in ({}, {"queues": ["mail.*"]}):
        api = await keyed.grant("operator", **more)
        answer = await api.post(f"/jobs/{path}", raw=b"\x81\xa3ids\x91\xa1\xff")
        assert answer.status == 400, answer.value


@pytest.mark.parametrize("role", ["worker", "operator", "admin"])
async def test_what_is_kept_from_a_role_is_refused_in_calls(keyed: Keyed, role: Any) -> None:
    api = await keyed.grant(role)
    for name, one in operations().items():
        for argument in one.restricted if one.is_for(frozenset((role,))) else ():
            answer = await api.post(f"/call/{name}", raw=msgpack.packb([msgpack.packb({argument: 1})]))
            may = one.is_for(frozenset((role,)), (argument,))
            assert (answer.status == 403) == (not may), (name, argument, answer.value)
