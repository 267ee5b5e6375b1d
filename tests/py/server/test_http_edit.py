"""Jobs that are there: changed, kicked, retried, removed, made to wait for others, found."""

from __future__ import annotations

import asyncio
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


async def test_a_change_leaves_what_it_does_not_name(api: Api) -> None:
    job_id = await api.enqueue("mail", argument={"a": 1}, timeout=5, tags=["x"])
    answer = await api("PATCH", f"/job/{job_id}", {"priority": -5, "max_retry": 2})
    assert answer.value == {"status": "queued"}
    job = (await api.get(f"/job/{job_id}")).value
    assert (job["priority"], job["max_retry"], job["timeout"], job["argument"]) == (-5, 2, 5, {"a": 1})
    assert job["tags"] == ["x"]


async def test_an_argument_is_changed_unread(api: Api) -> None:
    job_id = await api.enqueue("mail", argument=1)
    odd = b"\xd3" + (5).to_bytes(8, "big")  # an integer of more bytes than it needs
    body = b"\x81\xa8argument" + odd
    assert (await api("PATCH", f"/job/{job_id}", raw=body)).status == 200
    assert odd in (await api.get(f"/job/{job_id}")).raw


async def test_a_job_is_put_off_and_called_back(api: Api) -> None:
    job_id = await api.enqueue("mail")
    assert (await api("PATCH", f"/job/{job_id}", {"delay": 1000})).value == {"status": "scheduled"}
    assert await api.pick() == []
    assert (await api("PATCH", f"/job/{job_id}", {"delay": 0})).value == {"status": "queued"}
    assert len(await api.pick()) == 1


async def test_a_running_job_changes_its_tags_only(api: Api) -> None:
    job_id = await api.enqueue("mail")
    await api.pick()
    answer = await api("PATCH", f"/job/{job_id}", {"priority": 1})
    assert (answer.status, answer.error["code"]) == (409, "CONFLICT")
    assert (await api("PATCH", f"/job/{job_id}", {"tags": ["late"]})).value == {"status": "running"}


async def test_many_are_changed_at_once(api: Api) -> None:
    first, second = await api.enqueue("mail", argument=1), await api.enqueue("mail", argument=2)
    body = {"jobs": [{"id": first, "argument": 3}, {"id": UNKNOWN, "priority": 1}, {"id": second, "priority": -1}]}
    assert (await api.post("/jobs/change", body)).value == {"jobs": ["queued", "NOTFOUND", "queued"]}
    assert [job["argument"] for job in await api.pick(count=2)] == [2, 3]


# Kicking, retrying, removing


async def test_a_kicked_job_waits_again(api: Api) -> None:
    job_id = await api.enqueue("mail")
    assert (await api.post(f"/job/{job_id}/kick")).status == 409
    [job] = await api.pick()
    assert (await api.post(f"/job/{job_id}/kick")).value == {"status": "queued"}
    assert (await api.done(job)).error["code"] == "LOST"
    await api.pick()
    assert (await api.post(f"/job/{job_id}/kick", {"delay": 60})).value == {"status": "scheduled"}
    assert (await api.get(f"/job/{job_id}")).value["retry_count"] == 0
    assert (await api.post(f"/job/{job_id}/kick", {"delay": "x"})).error["field"] == "delay"


async def test_many_are_kicked(api: Api) -> None:
    ids = [await api.enqueue("mail") for _ in range(3)]
    await api.pick(count=2)
    answer = await api.post("/jobs/kick", {"ids": [*ids, UNKNOWN]})
    assert answer.value == {"jobs": ["queued", "queued", "CONFLICT", "NOTFOUND"]}
    await api.pick(count=3)
    assert (await api.post("/queue/mail/kick", {"count": 2})).value == {"kicked": 2, "more": True}
    assert (await api.post("/queue/mail/kick")).value == {"kicked": 1, "more": False}
    assert (await api.post("/queue/mail/kick", {"count": 0})).error["field"] == "count"
    assert (await api.post("/queue/a%2A/kick")).error["field"] == "name"


async def test_a_failed_job_runs_again(api: Api) -> None:
    job_id = await failed(api)
    assert await state(api, job_id) == "error"
    assert (await api.post(f"/job/{job_id}/retry")).value == {"status": "queued"}
    assert (await api.post(f"/job/{job_id}/retry")).status == 409


async def test_a_job_goes_to_another_queue(api: Api) -> None:
    job_id = await failed(api)
    assert (await api.post(f"/job/{job_id}/retry", {"queue": "slow*"})).error["field"] == "queue"
    assert (await api.post(f"/job/{job_id}/retry", {"kueue": "slow"})).error["field"] == "kueue"
    assert (await api.post(f"/job/{job_id}/retry", {"queue": "slow"})).value == {"status": "queued"}
    assert (await api.get(f"/job/{job_id}")).value["queue"] == "slow"
    assert (await api("PATCH", f"/job/{job_id}", {"queue": "fast"})).value == {"status": "queued"}
    changes = {"jobs": [{"id": job_id, "queue": "third"}]}
    assert (await api.post("/jobs/change", changes)).value == {"jobs": ["queued"]}
    [job] = await api.pick("third")
    assert (job["id"], job["queue"]) == (job_id, "third")
    assert (await api("PATCH", f"/job/{job_id}", {"queue": "fast"})).status == 409
    await api.done(job, type="failure", should_retry=False)
    step = await api.post("/jobs/retry", {"where": {"queue": "third"}, "queue": "slow"})
    assert step.value == {"cursor": "", "changed": 1}
    assert (await api.get(f"/job/{job_id}")).value["queue"] == "slow"
    history = (await api.get(f"/job/{job_id}/history")).value["events"]
    moved = [one.get("message") for one in history if one["event"] == "moved"]
    assert moved[-3:] == ["from slow", "from fast", "from third"]


async def test_a_failure_says_when_it_is_tried_again(api: Api) -> None:
    job_id = await api.enqueue("mail")
    [job] = await api.pick()
    assert (await api.done(job, type="failure", retry_in=-1)).error["field"] == "retry_in"
    assert (await api.done(job, retry_in=1)).error["field"] == "retry_in"
    assert (await api.done(job, type="failure", retry_in=500)).status == 204
    document = (await api.get(f"/job/{job_id}")).value
    assert document["status"] == "retrying"
    assert 499_000 < document["due_ms"] - document["started_ms"] < 600_000


async def test_all_that_failed_run_again_step_by_step(api: Api) -> None:
    ids = [await failed(api, group="Closed", message="shut") for _ in range(5)]
    other = await failed(api, group="Other")
    where = {"group": "Closed", "message": "hu"}
    cursor, changed = "", 0
    while True:
        body = {"where": where, "count": 2, **({"cursor": cursor} if cursor else {})}
        step = (await api.post("/jobs/retry", body)).value
        changed, cursor = changed + step["changed"], step["cursor"]
        if not cursor:
            break
    assert changed == 5
    assert {await state(api, job_id) for job_id in ids} == {"queued"}
    assert await state(api, other) == "error"
    assert (await api.post("/jobs/retry", {"ids": [other, UNKNOWN]})).value == {"jobs": ["queued", "NOTFOUND"]}


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


async def test_a_job_waits_for_others(api: Api) -> None:
    body = [{"name": "a"}, {"name": "a"}, {"name": "b", "depends": [0, 1], "argument": "last"}]
    [first, second, last] = (await api.post("/jobs", body)).value["job_ids"]
    shown = (await api.get(f"/job/{last}")).value
    assert (shown["status"], shown["depends"], shown["waits_for"]) == (
        "blocked",
        [first, second],
        [first, second],
    )
    for job in await api.pick("a", count=2):
        await api.done(job)
    [job] = await api.pick("b")
    assert (job["id"], job["depends"]) == (last, [first, second])


async def test_what_a_job_waits_for_can_change(api: Api) -> None:
    first, second = await api.enqueue("a"), await api.enqueue("a")
    job_id = await api.enqueue("b", depends=[first])
    path = f"/job/{job_id}/depends"
    assert (await api.post(path, {"add": [second], "remove": [first]})).value == {"status": "blocked"}
    assert (await api.get(f"/job/{job_id}")).value["waits_for"] == [second]
    answer = await api.post(f"/job/{second}/depends", {"add": [job_id]})
    assert (answer.status, answer.error["field"]) == (409, "add[0]")
    answer = await api.post(path, {"add": ["f" * 14]})
    assert (answer.status, answer.error["field"]) == (404, "add[0]")
    assert (await api.post(path, {"if_failed": "maybe"})).error["field"] == "if_failed"
    assert (await api.post(path, {"remove": [second]})).value == {"status": "queued"}
    await api.pick("b")
    assert (await api.post(path, {"remove": [second]})).status == 409


async def test_places_in_a_call_are_not_those_of_strangers(api: Api) -> None:
    bodies = [{"name": "a"}] * 10 + [{"name": "a", "depends": [0]}] + [{"name": "a"}] * 10
    answers = await asyncio.gather(*(api.post("/job", body) for body in bodies))
    assert [answer.status for answer in answers] == [201] * 10 + [400] + [201] * 10
    assert answers[10].error["field"] == "depends[0]"


async def test_cancelling_may_ask_about_those_that_wait(api: Api) -> None:
    first = await api.enqueue("a")
    second = await api.enqueue("b", depends=[first])
    answer = await api("DELETE", f"/job/{first}?dependents=refuse")
    assert (answer.status, answer.error["field"]) == (409, "dependents")
    assert (await api("DELETE", f"/job/{first}?dependents=maybe")).error["field"] == "dependents"
    assert (await api("DELETE", f"/job/{first}?dependents=cancel")).status == 204
    await api.master.engine.raw("tick", msgpack.packb({}))
    assert await state(api, second) == "cancelled"


async def test_a_unique_key_names_the_job_that_is_there(api: Api) -> None:
    body = {"name": "a", "unique": "k", "argument": 1}
    first = await api.post("/job", body)
    again = await api.post("/job", body | {"argument": 2, "if_exists": "replace"})
    assert (first.status, again.status, again.value) == (201, 200, first.value)
    assert (await api.get(f"/job/{first.value['job_id']}")).value["argument"] == 2
    many = await api.post("/jobs", [body, {"name": "b"}])
    assert (many.status, many.value["created"]) == (201, [False, True])
    assert (await api.post("/jobs", [body])).status == 200


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


async def test_every_job_is_found_once_page_by_page(api: Api) -> None:
    ids = [await api.enqueue(f"q{number % 3}") for number in range(10)]
    found: list[str] = []
    cursor = ""
    while True:
        page = (await api.get(f"/jobs?count=3&brief&cursor={cursor}")).value
        found += [job["id"] for job in page["jobs"]]
        cursor = page["cursor"]
        if not cursor:
            break
    assert sorted(found) == ids


async def test_the_jobs_of_a_queue_in_order(api: Api) -> None:
    low = await api.enqueue("mail", priority=5)
    high = await api.enqueue("mail", priority=-5)
    later = await api.enqueue("mail", delay=100)
    ids = [job["id"] for job in (await api.get("/queue/mail/jobs")).value["jobs"]]
    assert ids == [high, low]
    [job] = (await api.get("/queue/mail/jobs?status=scheduled&brief")).value["jobs"]
    assert job["id"] == later
    assert (await api.get("/queue/a%00b/jobs")).error["field"] == "name"


async def test_failures_by_group(api: Api) -> None:
    await failed(api, group="a.Closed", message="one")
    last = await failed(api, group="a.Closed", message="two")
    await failed(api)
    found = (await api.get("/failures")).value
    assert [(group["group"], group["count"]) for group in found["failures"]] == [
        ("a.Closed", 2),
        ("other", 1),
    ]
    assert (found["failures"][0]["id"], found["failures"][0]["message"]) == (last, "two")
    first = (await api.get("/failures?count=1")).value
    assert first["cursor"] and len(first["failures"]) == 1
    job = (await api.get(f"/job/{last}")).value
    assert job["group"] == "a.Closed"


async def test_tags_and_how_often(api: Api) -> None:
    for tags in (["b"], ["a", "b"], ["c", "b", "a"]):
        await api.enqueue("mail", tags=tags)
    assert [tuple(tag.values()) for tag in (await api.get("/tags")).value["tags"]] == [
        ("a", 2),
        ("b", 3),
        ("c", 1),
    ]
    top = (await api.get("/tags?top=2")).value["tags"]
    assert [(tag["tag"], tag["count"]) for tag in top] == [("b", 3), ("a", 2)]
    assert (await api.get("/tags?top=x")).error["field"] == "top"
    assert (await api.get("/tags?top=1&count=2")).error["field"] == "top"


async def test_the_history_of_a_job(api: Api) -> None:
    job_id = await failed(api, group="Closed", message="shut")
    await api.post(f"/job/{job_id}/retry")
    [job] = await api.pick()
    await api.done(job)
    history = (await api.get(f"/job/{job_id}/history")).value
    assert [event["event"] for event in history["events"]] == [
        "enqueued",
        "started",
        "failed",
        "started",
        "done",
    ]
    assert history["events"][2]["group"] == "Closed"


@pytest.mark.parametrize("content_type", [MSGPACK, JSON])
async def test_all_of_it_in_json_as_well(api: Api, content_type: str) -> None:
    job_id = await api.enqueue("mail", argument={"b": b"\xff"}, tags=["t"])
    for path in ("/jobs", f"/job/{job_id}/history", "/tags", "/failures", "/queue/mail/jobs", "/stats"):
        assert (await api.get(path, accept=content_type)).status == 200
