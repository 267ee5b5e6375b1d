"""Workers over HTTP: registering, picking, reporting, giving back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from http_support import JSON, Api, api, master  # noqa: F401

UNKNOWN = "00000000000001"
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


async def test_unregistering_needs_the_header(api: Api) -> None:
    answer = await api("DELETE", "/worker")
    assert (answer.status, answer.error["field"]) == (400, "worker-id")


async def test_a_worker_may_name_itself_in_any_script(api: Api) -> None:
    await api.enqueue()
    [job] = await api.pick(worker="Jürgen 🙂")
    shown = (await api.get(f"/job/{job['id']}")).value
    assert shown["worker_id"] == "Jürgen 🙂"


async def test_a_long_poll_waits_for_a_job(api: Api) -> None:
    waiting = asyncio.create_task(api.pick("mail", timeout=20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    job_id = await api.enqueue()
    [job] = await waiting
    assert job["id"] == job_id


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


async def test_releasing(api: Api) -> None:
    job_id = await api.enqueue()
    await api.pick()
    held = [[job_id, api.tokens[job_id]], [job_id, "9-"]]
    answer = await api.post("/release", {"jobs": held}, worker_id="w")
    assert answer.value == {"jobs": ["queued", "LOST"]}
    shown = (await api.get(f"/job/{job_id}")).value
    assert (shown["status"], shown["retry_count"]) == ("queued", 0)
    await api.pick()
    lease = [job_id, api.tokens[job_id]]
    answer = await api.post("/release", {"jobs": [lease], "delay": 60}, worker_id="w")
    assert answer.value == {"jobs": ["scheduled"]}
    answer = await api.post("/release", {"jobs": [lease], "delay": -1}, worker_id="w")
    assert answer.error["field"] == "delay"
    answer = await api.post("/release", {"jobs": [], "dealy": 1}, worker_id="w")
    assert answer.error["field"] == "dealy"


async def test_a_lost_attempt_is_told(api: Api) -> None:
    await api.enqueue()
    [job] = await api.pick()
    await api.post("/release", {"jobs": [[job["id"], job["token"]]]}, worker_id="w")
    assert (await api.done(job)).value["states"] == ["LOST"]
    assert (await api.done({"id": UNKNOWN, "token": TOKEN})).value["states"] == ["NOTFOUND"]


async def test_many_outcomes_and_the_next_jobs(api: Api) -> None:
    for n in range(4):
        await api.enqueue(argument=n, keep_result=True)
    jobs = await api.pick(count=3)
    held = [{"id": job["id"], "token": job["token"]} for job in jobs]
    outcomes: list[Any] = [
        {**held[0], "type": "success", "result": "r"},
        {**held[1], "type": "failure", "error": "e", "should_retry": False},
        {**held[2], "token": TOKEN, "type": "success"},
        {"id": UNKNOWN, "token": TOKEN, "type": "failure"},
    ]
    answer = await api.post("/done", {"outcomes": outcomes, "pick": {"queues": "*", "count": 9}}, worker_id="w")
    assert answer.value["states"] == ["done", "error", "LOST", "NOTFOUND"]
    assert [job["argument"] for job in answer.value["jobs"]] == [3]
    assert (await api.get(f"/job/{jobs[0]['id']}/result")).value == "r"
    assert (await api.get(f"/job/{jobs[1]['id']}")).value["error"] == "e"
    answer = await api.post("/done", {"outcomes": outcomes}, worker_id="w")
    assert answer.value["states"] == ["done", "error", "LOST", "NOTFOUND"]
    answer = await api.post("/done", {"outcomes": [], "pick": {"queues": "*"}}, worker_id="w")
    assert answer.value["jobs"] == []


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
