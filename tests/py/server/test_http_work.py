"""What workers ask, and what there is beside jobs: queues, schedules, limits, copies."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

import msgpack
import pytest

from http_support import MSGPACK, Api, api, asgi, master  # noqa: F401
from jqmaster.engine.engine import Engine
from test_http_wire import value_of

UNKNOWN = "0" * 14
TOKEN = "1-0123456789ab"
NOBODY = "w00000000000001"


async def register(api: Api, name: str = "push", **fields: Any) -> str:
    body = {"name": name, "queues": "*", "url": f"http://127.0.0.1:1/{name}", **fields}
    answer = await api.post("/worker", body)
    assert answer.status == 201, answer.value
    worker_id: str = answer.value["worker_id"]
    return worker_id


async def test_a_worker_registers_and_is_listed(api: Api) -> None:
    pokes = api.master.dispatch.count
    worker_id = await register(api, queues=["mail", "report.*"], max_jobs=3)
    assert api.master.dispatch.count == pokes + 1
    [shown] = (await api.get("/workers")).value["workers"]
    assert (shown["id"], shown["name"], shown["max_jobs"]) == (worker_id, "push", 3)
    assert (shown["queues"], shown["held"], shown["state"]) == (["mail", "report.*"], 0, "ready")
    answer = await api("DELETE", "/worker", worker_id=worker_id)
    assert (answer.status, answer.value) == (200, {"released": 0})
    assert (await api.get("/workers")).value["workers"] == []


async def test_who_is_unknown_must_register_again(api: Api) -> None:
    for call in (
        api("DELETE", "/worker", worker_id=NOBODY),
        api.post("/worker/heartbeat", {"jobs": []}, worker_id=NOBODY),
    ):
        answer = await call
        assert (answer.status, answer.error["code"], answer.error["field"]) == (404, "NOTFOUND", "worker-id")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/pick", {"queues": "*"}),
        ("/done", {"outcomes": [{"id": UNKNOWN, "token": TOKEN, "type": "success"}]}),
        ("/release", {"jobs": []}),
        ("/worker/heartbeat", {"jobs": []}),
    ],
)
async def test_a_worker_says_who_it_is(api: Api, path: str, body: Any) -> None:
    answer = await api.post(path, body)
    assert (answer.status, answer.error["field"]) == (400, "worker-id")
    for worker in ("", "x" * 300, "a\x01b"):
        answer = await api.post(path, body, worker_id=worker)
        assert (answer.status, answer.error["field"]) == (400, "worker-id")
    if body is not None:
        answer = await api.post(path, {**body, "worker": "a"}, worker_id="b")
        assert (answer.status, answer.error["field"]) == (400, "worker")
        answer = await api.post(path, {**body, "worker": 5})
        assert (answer.status, answer.error["field"]) == (400, "worker")


async def test_heartbeats_renew_leases(api: Api) -> None:
    await api.enqueue(timeout=7)
    [job] = await api.pick()
    leases = [[job["id"], job["token"]], [job["id"], "2-"], [UNKNOWN, TOKEN]]
    answer = await api.post("/worker/heartbeat", {"jobs": leases}, worker_id="w")
    assert answer.value == {"jobs": [7000, "LOST", "LOST"], "request": ""}
    await api("DELETE", f"/job/{job['id']}")
    answer = await api.post("/worker/heartbeat", {"jobs": [[job["id"], job["token"]]]}, worker_id="w")
    assert answer.value == {"jobs": ["CANCELLED"], "request": ""}


async def test_a_heartbeat_without_jobs_keeps_a_worker_alive(api: Api) -> None:
    worker_id = await register(api)
    pokes = api.master.dispatch.count
    answer = await api.post("/worker/heartbeat", {"jobs": []}, worker_id=worker_id)
    assert answer.value == {"jobs": [], "request": ""}
    assert api.master.dispatch.count == pokes + 1


async def test_a_registered_workers_outcomes_let_dispatch_look(api: Api) -> None:
    worker_id = await register(api)
    await api.enqueue()
    [job] = await api.pick(worker=worker_id)
    before = api.master.dispatch.count
    await api.done(job, worker=worker_id)
    await api.post("/release", {"jobs": [[job["id"], job["token"]]]}, worker_id=worker_id)
    assert api.master.dispatch.count == before + 2
    await api.enqueue()
    [job] = await api.pick(worker="puller")
    await api.done(job, worker="puller")
    assert api.master.dispatch.count == before + 2


async def test_jobs_follow_an_outcome(api: Api) -> None:
    await api.enqueue("split")
    [job] = await api.pick("split")
    follow = [{"name": "part", "argument": b"\x00"}, {"name": "join", "depends": [0]}]
    answer = await api.done(job, enqueue=follow)
    assert (answer.status, answer.value["states"]) == (200, ["done"])
    [[part, join]] = answer.value["job_ids"]
    assert [await state(api, one) for one in (part, join)] == ["queued", "blocked"]
    assert (await api.get(f"/job/{part}")).value["argument"] == b"\x00"
    # Repeated, nothing follows.
    answer = await api.done(job, enqueue=follow)
    assert (answer.status, answer.value) == (200, {"states": ["done"], "job_ids": [[]]})
    assert len((await api.get("/jobs?name=part")).value["jobs"]) == 1


async def test_many_outcomes_and_what_follows_each(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.enqueue(name)
    jobs = await api.pick(count=3)
    one, two, three = ({"id": job["id"], "token": job["token"], "type": "success"} for job in jobs)
    outcomes = [
        one | {"enqueue": [{"name": "x"}, {"name": "x"}]},
        two,
        three | {"move": {"queue": "y", "delay": 9}},
    ]
    answer = await api.post("/done", {"outcomes": outcomes, "pick": {"queues": "x"}}, worker_id="puller")
    assert answer.value["states"] == ["done", "done", "scheduled"]
    assert [len(ids) for ids in answer.value["job_ids"]] == [2, 0, 0]
    assert [job["name"] for job in answer.value["jobs"]] == ["x"]


async def test_a_heartbeat_says_how_far_a_job_is(api: Api) -> None:
    job_id = await api.enqueue("a", argument=0)
    other = await api.enqueue("a", argument="other")
    await api.pick(count=2)
    notes = {"progress": 0.5, "message": "half", "argument": 0}
    jobs = [[other, api.tokens[other]], [job_id, api.tokens[job_id], notes]]
    body = {"jobs": jobs, "arguments": [{"done": b"\xff"}]}
    answer = await api.post("/worker/heartbeat", body, worker_id="puller")
    assert answer.value["jobs"] == [30000, 30000]
    shown = (await api.get(f"/job/{job_id}")).value
    assert (shown["progress"], shown["progress_message"], shown["argument"]) == (
        0.5,
        "half",
        {"done": b"\xff"},
    )
    assert (await api.get(f"/job/{other}")).value["argument"] == "other"


async def state(api: Api, job_id: str) -> str:
    return str((await api.get(f"/job/{job_id}")).value["status"])


async def test_a_queue_is_purged(api: Api) -> None:
    await api.post("/jobs", {"jobs": [{"name": "a"}] * 250})
    await api.enqueue("a", delay=100)
    await api.enqueue("b")
    [running] = await api.pick("a")
    assert (await api("DELETE", "/queue/a/jobs?status=scheduled")).value == {"changed": 1, "cursor": ""}
    step = (await api("DELETE", "/queue/a/jobs?count=100")).value
    assert step["changed"] == 100 and step["cursor"]
    while step["cursor"]:
        step = (await api("DELETE", f"/queue/a/jobs?cursor={step['cursor']}&count=1000")).value
    assert [job["id"] for job in (await api.get("/jobs?queue=a")).value["jobs"]] == [running["id"]]
    for query, field in (("status=lost", "status"), ("count=1001", "count"), ("what=1", "what")):
        answer = await api("DELETE", f"/queue/a/jobs?{query}")
        assert (answer.status, answer.error["field"]) == (400, field)


async def test_a_schedule_from_beginning_to_end(api: Api) -> None:
    path = f"/schedule/{quote('nightly/ä', safe='')}"
    assert (await api.get(path)).status == 404
    body = {
        "cron": "30 2 * * *",
        "utc_offset": 60,
        "job": {"name": "report", "priority": 3},
        "argument": b"\xff",
    }
    made = await api("PUT", path, body)
    assert (made.value["id"], made.value["made"], made.value["argument"]) == ("nightly/ä", 0, b"\xff")
    shown = (await api.get(f"{path}?next=3")).value
    assert shown["next"][0] == shown["next_ms"] and len(shown["next"]) == 3
    assert (await api("PUT", path, {"every": 60, "job": {"name": "report"}})).value["argument"] is None
    listed = (await api.get("/schedules?next=1&count=10")).value
    assert [len(one["next"]) for one in listed["schedules"]] == [1]
    assert (await api("DELETE", path)).status == 204
    assert (await api("DELETE", path)).status == 404
    assert (await api.get("/schedules")).value == {"schedules": [], "cursor": ""}


async def test_a_namespace_is_copied(api: Api) -> None:
    jobs = [{"name": "a", "argument": [number]} for number in range(300)]
    ids = (await api.post("/jobs", {"jobs": jobs})).value["job_ids"]
    await api("PUT", "/constraint/c", {"match": {"name": "a"}, "concurrency": 1})
    records = (await api.get("/export")).raw
    namespace = "{t" + secrets.token_hex(6) + "}"
    path = f"/import?namespace={quote(namespace)}"
    answer = await api.post(path, raw=records, content_type="application/octet-stream")
    assert answer.value["complete"] is True and answer.value["keys"] > 600
    copy = Engine(api.master.engine.redis, namespace)
    documents = await copy.get(ids)
    assert [document and document["argument"] for document in documents] == [
        msgpack.packb([number]) for number in range(300)
    ]
    assert await copy.audit_all() == []
    own = f"/import?namespace={quote(api.master.engine.namespace)}"
    answer = await api.post(own, raw=records, content_type="application/octet-stream")
    assert (answer.status, answer.error["code"]) == (409, "CONFLICT")


@pytest.mark.parametrize(
    ("query", "body", "field"),
    [("", b"\x93", "namespace"), ("?namespace=x", b"\x90", "namespace"),
     ("?namespace={a b}", b"\x90", "namespace"), ("?namespace={n}", b"\x90", "records[0]"),
     ("?namespace={n}", b"", None), ("?namespace={n}", b"\x93\x01", None),
     ("?namespace={n}&what=1", b"\x90", "what")],
)  # fmt: skip
async def test_a_wrong_import_is_refused(api: Api, query: str, body: bytes, field: str | None) -> None:
    answer = await api.post("/import" + quote(query, safe="?=&"), raw=body)
    assert (answer.status, answer.error.get("field")) == (400, field)


@pytest.mark.parametrize(
    "match",
    [
        b"\x81\xa4name\xa4mail",
        b"\xdf\x00\x00\x00\x01\xd9\x04name\xdb\x00\x00\x00\x04mail",
        b"\x81\xacargument.bin\xc4\x02\x00\xff",
        b"\x81\xacargument.ext\xd4\x05\x00",
        b"\x81\xaaargument.n\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x81\xaaargument.n\xd3\x00\x00\x00\x00\x00\x00\x00\x01",
    ],
)
async def test_the_matcher_passes_byte_for_byte(api: Api, match: bytes) -> None:
    # Past the checks against the document, which has no spelling of its own for binary data.
    body = b"\x82\xa5match" + match + b"\xabconcurrency\x01"
    answer = await asgi(api.app, "PUT", "/constraint/c", {"content-type": MSGPACK}, body)
    assert answer.status == 200, answer.value
    assert value_of(answer.raw, "match") == match
    got = await asgi(api.app, "GET", "/constraint/c", {"accept": MSGPACK}, b"")
    assert value_of(got.raw, "match") == match
