"""Keys that are bound to queues, and what is kept from roles: by the heads of scripts."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from http_support import master
from jqmaster.manifest.contract import ANYBODY, SERVER, Argument, Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.routes import ROUTES
from jqmaster.server.http.within import kind_of
from keys_support import Keyed, keyed
from test_keys import ask

__all__ = ["keyed", "master"]
LISTED = ("queues", "alerts")  # which leave out what is of other queues


async def test_lists_of_queues_and_alerts_have_its_own(keyed: Keyed) -> None:
    api = await keyed.grant("viewer", queues=["mail.*"])
    for name in ("mail.de", "report"):
        await keyed.engine.queue(name, paused=True)
        await keyed.engine.enqueue([({"name": name}, b"\xc0")])
    assert [queue["name"] for queue in (await api.get("/queues")).value["queues"]] == ["mail.de"]
    assert [alert["queue"] for alert in (await api.get("/alerts")).value["alerts"]] == ["mail.de"]
    _, *entries = msgpack.unpackb((await api.post("/call/queues", raw=b"\x91\xc4\x01\x80")).raw)
    assert [msgpack.unpackb(entry)["name"] for entry in entries] == ["mail.de"]
    for path, status in (
        ("/queues?names=mail.de", 200),
        ("/alerts?queue=mail.de", 200),
        ("/stats?by=day&queue=mail.de", 200),
        ("/queues?names=report", 403),
        ("/alerts?queue=report", 403),
        ("/workers", 403),
    ):
        assert (await api.get(path)).status == status, path
    refused = (await api.get("/session")).value["refused"]
    assert {"/workers", "/constraints", "/keys"} <= set(refused)
    assert {"/queues", "/alerts", "/jobs", "/stats", "/job/{id}/history"}.isdisjoint(refused)


async def test_every_operation_is_refused_unless_it_is_known_to_be_within(keyed: Keyed) -> None:
    api = await keyed.grant("admin", queues=["elsewhere"])
    await keyed.engine.queue("q")
    for route in ROUTES:
        if route.path.startswith("/job/") or route.takes_body or route.operation.roles == (ANYBODY,):
            continue  # asked about above: of an unknown job; the body cannot be read
        status, _, body = await ask(api, route, api.headers)
        assert status == 403 or route.operation.name in ("config", "unregister", "queues", "alerts"), (
            route.path,
            status,
            body,
        )


def naming(kind: str, queue: str, job: str) -> Any:
    """A value of this type that names a queue, or a job of it; None for a type that names none. Bytes stand behind the
    spec."""
    new = {"name": "a", "queue": queue}
    return {
        "queue": queue, "job": job, "Where": {"queue": queue}, "Pick": {"queues": [queue]},
        "NewJob": [msgpack.packb(new), b"\xc0"], "JobChange": [msgpack.packb({"id": job, "queue": queue}), b""],
        "Outcome": [msgpack.packb({"type": "success", "enqueue": 1}), b"\xc0", msgpack.packb(new), b"\xc0"],
    }.get(kind)  # fmt: skip


def call(operation: Operation, argument: Argument, value: Any) -> bytes:
    """With this argument alone."""
    is_list = argument.of.of is not None
    if argument.name not in operation.behind:
        return bytes(msgpack.packb([msgpack.packb({argument.name: [value] if is_list else value})]))
    spec = [msgpack.packb({"worker": "w"})] if operation.positions[0] == "spec" else []
    return bytes(msgpack.packb([*spec, *(value if isinstance(value, list) else [value])]))


CALLED = {name: one for name, one in operations().items() if one.roles != (SERVER,)}
NAMED = [
    (name, argument.name, kind)
    for name, one in CALLED.items()
    for argument in one.arguments
    for kind in [kind_of(one, argument)]
    if naming(kind, "", "") is not None and argument.name not in one.restricted
]


@pytest.mark.parametrize(("name", "argument", "kind"), NAMED)
async def test_a_call_may_name_its_own_queues_and_their_jobs_alone(
    keyed: Keyed, name: str, argument: str, kind: str
) -> None:
    api = await keyed.grant("admin", queues=["mail.*"])
    mine, other = [one.id for one in await keyed.engine.enqueue([({"name": n}, b"\xc0") for n in ("mail.de", "other")])]
    one = CALLED[name]
    for queue, job, within in (
        ("mail.de", mine, True), ("mail.d*", mine, True), ("other", other, False), ("m*", other, False),
    ):  # fmt: skip
        answer = await api.post(f"/call/{name}", raw=call(one, one.named[argument], naming(kind, queue, job)))
        if kind == "job" and not within:  # as if it was gone
            assert (answer.status, answer.error["message"]) == (404, f"no such job: {job}")
            continue
        assert (answer.status != 403) == within, (queue, answer.value)
        assert within or "bound to queues" in answer.error["message"]


async def test_no_job_of_others_comes_behind_large_ones(keyed: Keyed) -> None:
    api = await keyed.grant("admin", queues=["mine"])
    large = msgpack.packb("x" * 5_000_000)
    ids = [
        one.id
        for name, argument in (("mine", large), ("mine", large), ("other", b"\xc0"))
        for one in await keyed.engine.enqueue([({"name": name}, argument)])
    ]
    assert (await api.post("/jobs/cancel", {"ids": ids[:2]})).status == 200
    answer = await api.post("/jobs/cancel", {"ids": ids})
    assert (answer.status, answer.error["message"]) == (404, f"no such job: {ids[2]}")


@pytest.mark.parametrize("move", [{"name": "other"}, {"queue": "other"}, {"name": "mail.de", "queue": "other"}])
async def test_what_is_moved_stays_within_them(keyed: Keyed, move: dict[str, str]) -> None:
    api = await keyed.grant("worker", queues=["mail.*"])
    outcome = msgpack.packb({"type": "success", "move": move})
    body = msgpack.packb([msgpack.packb({"worker": "w"}), outcome, b"\xc0"])
    assert (await api.post("/call/finish", raw=body)).status == 403


async def test_what_is_picked_with_outcomes_stays_within_them(keyed: Keyed) -> None:
    api = await keyed.grant("worker", queues=["m"])
    for queues, status in (("m", 200), (["m"], 200), ("mm", 403), (["m", "x"], 403)):
        spec = msgpack.packb({"worker": "w", "pick": {"queues": queues}})
        assert (await api.post("/call/finish", raw=msgpack.packb([spec]))).status == status, queues


async def test_a_job_is_not_changed_into_a_queue_of_others(keyed: Keyed) -> None:
    api = await keyed.grant("pusher", queues=["mail.*"])
    [job] = await keyed.engine.enqueue([({"name": "mail.de"}, b"\xc0")])
    for queue, status in (("mail.fr", 200), ("other", 403)):
        body = msgpack.packb([msgpack.packb({"id": job.id, "queue": queue}), b""])
        assert (await api.post("/call/change", raw=body)).status == status, queue


async def test_what_concerns_jobs_of_others_or_all_queues_is_refused(keyed: Keyed) -> None:
    api = await keyed.grant("admin", queues=["mail.*"])
    for name, one in CALLED.items():
        if one.positions[:1] not in (("spec",), ("[spec]",), ()):
            continue  # what is no id is no job of another queue
        answer = await api.post(f"/call/{name}", raw=msgpack.packb([msgpack.packb({})] if one.positions else []))
        assert answer.status == 403 or (one.is_free and answer.status in (200, 400)) or name in LISTED, (
            name,
            answer.value,
        )
    [job] = await keyed.engine.enqueue([({"name": "mail.de"}, b"\xc0")])
    assert (await api.post("/jobs/cancel", {"ids": [job.id], "dependents": "cancel"})).status == 403


async def test_a_job_is_of_the_queue_of_its_name_unless_it_says_another(keyed: Keyed) -> None:
    api = await keyed.grant("pusher", queues=["mail.*"])
    for job, status in (
        ({"name": "mail.de"}, 201), ({"name": "x"}, 403), ({"name": "mail.de", "queue": "x"}, 403),
        ({"name": "mail.de", "queue": None}, 201), ({"name": "x", "queue": None}, 403),
    ):  # fmt: skip
        assert (await api.post("/job", raw=msgpack.packb(job))).status == status, job
        many = {"jobs": [{"name": "mail.de"}, job]}
        assert (await api.post("/jobs", raw=msgpack.packb(many))).status == {201: 200}.get(status, status), job


async def test_nil_names_no_job(keyed: Keyed) -> None:
    api = await keyed.grant("operator", queues=["mail"])
    spec = msgpack.packb({"ids": None, "where": {"queue": "mail"}})
    assert (await api.post("/call/cancel", raw=msgpack.packb([spec]))).status == 200


@pytest.mark.parametrize("path", ["cancel", "retry", "discard", "kick"])
async def test_text_that_is_no_utf8_is_refused_as_for_others(keyed: Keyed, path: str) -> None:
    for more in ({}, {"queues": ["mail.*"]}):
        api = await keyed.grant("operator", **more)
        answer = await api.post(f"/jobs/{path}", raw=b"\x81\xa3ids\x91\xa1\xff")
        assert answer.status == 400, answer.value


async def test_what_scripts_may_read_otherwise_is_refused(keyed: Keyed) -> None:
    api = await keyed.grant("admin")
    bound = await keyed.grant("pusher", queues=["mail"])
    twice = b"\x82\xa7digests\xc2\xa7digests\xc3"
    assert (await api.post("/call/keys", raw=msgpack.packb([twice]))).status == 400
    job = b"\x82\xa4name\xa4mail\xa4name\xa5other"
    assert (
        await bound.post("/call/enqueue", raw=msgpack.packb([job, b"\xc0", msgpack.packb({"name": "mail"}), b"\xc0"]))
    ).status == 400


@pytest.mark.parametrize("role", ["worker", "operator", "admin"])
async def test_what_is_kept_from_a_role_is_refused_in_calls(keyed: Keyed, role: Any) -> None:
    api = await keyed.grant(role)
    for name, one in operations().items():
        for argument in one.restricted if not one.lacking(frozenset((role,))) else ():
            answer = await api.post(f"/call/{name}", raw=msgpack.packb([msgpack.packb({argument: 1})]))
            may = not one.lacking(frozenset((role,)), (argument,))
            assert (answer.status == 403) == (not may), (name, argument, answer.value)
