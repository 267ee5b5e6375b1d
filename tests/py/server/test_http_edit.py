"""Jobs that are there: changed, kicked, retried, removed, made to wait for others, found."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from http_support import JSON, MSGPACK, Api, api, master  # noqa: F401

UNKNOWN = "0" * 14
ONE_JOB = (
    ("PATCH", "/job/{}", {"priority": 1}),
    ("POST", "/job/{}/kick", {}),
    ("POST", "/job/{}/retry", None),
    ("DELETE", "/job/{}/record", None),
    ("POST", "/job/{}/depends", {"remove": [UNKNOWN]}),
    ("POST", "/job/{}/track", {}),
    ("GET", "/job/{}/history", None),
    ("GET", "/job/{}/explain", None),
)


async def state(api: Api, job_id: str) -> str:
    return str((await api.get(f"/job/{job_id}")).value["status"])


async def failed(api: Api, name: str = "mail", **outcome: Any) -> str:
    job_id = await api.enqueue(name, max_retry=0)
    [job] = await api.pick(name)
    await api.done(job, type="failure", **outcome)
    return job_id


@pytest.mark.parametrize("job_id", [UNKNOWN, "x", "%F0%9F%99%82"])
@pytest.mark.parametrize(("method", "path", "body"), ONE_JOB)
async def test_an_unknown_job(api: Api, method: str, path: str, body: Any, job_id: str) -> None:
    answer = await api(method, path.format(job_id), body)
    assert (answer.status, answer.error["code"]) == (404, "NOTFOUND")


# Changing


async def test_an_argument_is_changed_unread(api: Api) -> None:
    job_id = await api.enqueue("mail", argument=1)
    odd = b"\xd3" + (5).to_bytes(8, "big")  # an integer of more bytes than it needs
    body = b"\x81\xa8argument" + odd
    assert (await api("PATCH", f"/job/{job_id}", raw=body)).status == 200
    assert odd in (await api.get(f"/job/{job_id}")).raw


async def test_many_are_changed_at_once(api: Api) -> None:
    first, second = await api.enqueue("mail", argument=1), await api.enqueue("mail", argument=2)
    body = {"jobs": [{"id": first, "argument": 3}, {"id": UNKNOWN, "priority": 1}, {"id": second, "priority": -1}]}
    assert (await api.post("/jobs/change", body)).value == {"jobs": ["queued", "NOTFOUND", "queued"]}
    assert [job["argument"] for job in await api.pick(count=2)] == [2, 3]


# Kicking, retrying, removing


async def test_many_are_kicked(api: Api) -> None:
    ids = [await api.enqueue("mail") for _ in range(3)]
    await api.pick(count=2)
    answer = await api.post("/jobs/kick", {"ids": [*ids, UNKNOWN]})
    assert answer.value == {"jobs": ["queued", "queued", "CONFLICT", "NOTFOUND"]}
    await api.pick(count=3)
    answer = await api.post("/jobs/kick", {"where": {"queue": "mail"}})
    assert answer.value == {"changed": 3, "cursor": ""}


async def test_a_failed_job_runs_again(api: Api) -> None:
    job_id = await failed(api)
    assert await state(api, job_id) == "error"
    assert (await api.post(f"/job/{job_id}/retry")).value == {"status": "queued"}
    assert (await api.post(f"/job/{job_id}/retry")).status == 409


async def test_a_removed_job_is_gone(api: Api) -> None:
    job_id = await api.enqueue("mail")
    assert (await api("DELETE", f"/job/{job_id}/record")).value == {"status": "queued"}
    assert (await api.get(f"/job/{job_id}")).status == 404
    running = await api.enqueue("mail")
    await api.pick()
    assert (await api("DELETE", f"/job/{running}/record")).status == 409
    answer = await api.post("/jobs/discard", {"ids": [running, job_id]})
    assert answer.value == {"jobs": ["CONFLICT", "NOTFOUND"]}


async def test_many_are_cancelled_by_what_they_are(api: Api) -> None:
    ids = [await api.enqueue("mail", tags=["a" if number % 2 else "b"]) for number in range(4)]
    assert (await api.post("/jobs/cancel", {"where": {"tag": "a"}})).value == {"cursor": "", "changed": 2}
    assert [await state(api, job_id) for job_id in ids] == ["queued", "cancelled"] * 2
    answer = await api.post("/jobs/cancel", {"ids": [ids[0], UNKNOWN], "force": True, "dependents": "leave"})
    assert answer.value == {"jobs": ["queued", "NOTFOUND"]}


# Dependencies and unique keys


async def test_cancelling_may_ask_about_those_that_wait(api: Api) -> None:
    first = await api.enqueue("a")
    second = await api.enqueue("b", depends=[first])
    answer = await api("DELETE", f"/job/{first}?dependents=refuse")
    assert (answer.status, answer.error["field"]) == (409, "id")
    assert (await api("DELETE", f"/job/{first}?dependents=maybe")).error["field"] == "dependents"
    assert (await api("DELETE", f"/job/{first}?dependents=cancel")).status == 200
    await api.master.engine.raw("tick", msgpack.packb({}))
    assert await state(api, second) == "cancelled"


async def test_a_unique_key_names_the_job_that_is_there(api: Api) -> None:
    body = {"name": "a", "unique": "k", "argument": 1}
    first = await api.post("/job", body)
    again = await api.post("/job", body | {"argument": 2, "if_exists": "replace"})
    assert (first.status, again.status, again.value) == (201, 200, first.value)
    assert (await api.get(f"/job/{first.value['job_id']}")).value["argument"] == 2
    many = await api.post("/jobs", {"jobs": [body, {"name": "b"}]})
    assert (many.status, many.value["created"]) == (201, [False, True])
    assert (await api.post("/jobs", {"jobs": [body]})).status == 200


# Finding


async def test_jobs_are_found_by_what_they_are(api: Api) -> None:
    mails = [await api.enqueue("mail", argument=n, tags=["t"] if n else ["u"]) for n in range(3)]
    report = await api.enqueue("report", delay=100)
    wanted = {
        "/jobs": [*mails, report], "/jobs?queue=mail": mails, "/jobs?name=report": [report],
        "/jobs?status=scheduled": [report], "/jobs?status=scheduled,queued&queue=mail": mails,
        "/jobs?tag=t": mails[1:], "/jobs?tag=t&newest": mails[:0:-1], "/jobs?from_ms=99999999999999": [],
        "/jobs?to_ms=1": [], "/jobs?name=none": [],
    }  # fmt: skip
    for path, ids in wanted.items():
        found = (await api.get(path)).value
        assert ([job["id"] for job in found["jobs"]], found["cursor"]) == (ids, ""), path
    [job] = (await api.get("/jobs?name=mail&count=1")).value["jobs"]
    assert job["argument"] == 0
    [job] = (await api.get("/jobs?name=mail&count=1&brief=1")).value["jobs"]
    assert "argument" not in job


@pytest.mark.parametrize("content_type", [MSGPACK, JSON])
async def test_all_of_it_in_json_as_well(api: Api, content_type: str) -> None:
    job_id = await api.enqueue("mail", argument={"b": b"\xff"}, tags=["t"])
    for path in ("/jobs", f"/job/{job_id}/history", "/tags", "/failures", "/queue/mail/jobs", "/stats"):
        assert (await api.get(path, accept=content_type)).status == 200
