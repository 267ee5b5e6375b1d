"""What follows outcomes, what workers say and are asked, queues, schedules, statistics, settings, copies."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

import msgpack
import pytest

from http_support import JSON, Api, api, master  # noqa: F401
from jqmaster.engine.engine import Engine

UNKNOWN = "0" * 14


async def register(api: Api, **fields: Any) -> str:
    answer = await api.post("/worker", {"name": "w", "queues": "*", **fields})
    return str(answer.value["worker_id"])


async def state(api: Api, job_id: str) -> str:
    return str((await api.get(f"/job/{job_id}")).value["status"])


# What follows


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


# Heartbeats and requests to workers


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


async def test_a_worker_is_asked(api: Api) -> None:
    worker_id = await register(api)
    job_id = await api.enqueue("a")
    for request, answer in (("quiet", "quiet"), ("stop", "stop"), ("resume", "")):
        assert (await api.post(f"/worker/{worker_id}/{request}")).status == 204
        beat = await api.post("/worker/heartbeat", {"jobs": []}, worker_id=worker_id)
        assert beat.value == {"jobs": [], "request": answer}
        [shown] = (await api.get("/workers")).value["workers"]
        assert shown["request"] == answer
        assert len(await api.pick(worker=worker_id)) == (request == "resume")
    assert (await api.get("/workers")).value["workers"][0]["running"][0][0] == job_id


# Queues


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


# Schedules


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


# Statistics and settings


async def test_what_there_is_to_set(api: Api) -> None:
    settings = (await api.get("/config")).value
    described = (await api.get("/config?describe")).value
    assert {one["name"]: one["value"] for one in described} == settings
    assert all(one["meaning"] for one in described)
    changes = {"events_max": 7, "lease_grace": 1.5, "stats": False}
    assert (await api("PATCH", "/config", {"set": changes})).status == 200
    assert (await api.get("/config?describe=x")).error["field"] == "describe"


# Copies


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


async def test_json_knows_it_all(api: Api) -> None:
    body = {"every": 60, "job": {"name": "a"}, "argument": {"$bin": "AA=="}}
    answer = await api("PUT", "/schedule/s", body, content_type=JSON)
    assert answer.value["argument"] == {"$bin": "AA=="}
    await api.enqueue("a")
    [job] = await api.pick("a")
    follow = [{"name": "b", "argument": {"$bin": "AA=="}}]
    outcome = {"id": job["id"], "token": job["token"], "type": "success", "enqueue": follow}
    answer = await api.post("/done", {"outcomes": [outcome]}, content_type=JSON, worker_id="puller")
    assert answer.value["states"] == ["done"]
    [job] = await api.pick("b")
    beat = {"jobs": [[job["id"], job["token"], {"argument": 0}]], "arguments": [{"$bin": "AQ=="}]}
    await api.post("/worker/heartbeat", beat, content_type=JSON, worker_id="puller")
    assert (await api.get(f"/job/{job['id']}")).value["argument"] == b"\x01"
