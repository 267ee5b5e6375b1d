"""What workers ask, and what there is beside jobs: queues, schedules, limits, copies."""

from __future__ import annotations

from typing import Any

import pytest

from http_support import MSGPACK, Api, api, asgi, master  # noqa: F401
from test_http_wire import value_of

UNKNOWN = "0" * 14
TOKEN = "1-0123456789ab"


async def register(api: Api, name: str = "push", **fields: Any) -> str:
    body = {"name": name, "queues": "*", "url": f"http://127.0.0.1:1/{name}", **fields}
    answer = await api.post("/worker", body)
    assert answer.status == 200, answer.value
    worker_id: str = answer.value["worker_id"]
    return worker_id


async def test_a_worker_registers_and_is_listed(api: Api) -> None:
    worker_id = await register(api, queues=["mail", "report.*"], max_jobs=3)
    [shown] = (await api.get("/workers")).value["workers"]
    assert (shown["id"], shown["name"], shown["max_jobs"]) == (worker_id, "push", 3)
    assert (shown["queues"], shown["held"], shown["state"]) == (["mail", "report.*"], 0, "ready")
    answer = await api("DELETE", f"/worker/{worker_id}")
    assert (answer.status, answer.value) == (200, {"released": 0})
    assert (await api.get("/workers")).value["workers"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/pick", {"queues": "*"}),
        ("/done", {"outcomes": [{"id": UNKNOWN, "token": TOKEN, "type": "success"}]}),
        ("/release", {"jobs": [[UNKNOWN, TOKEN]]}),
        ("/worker/heartbeat", {"jobs": []}),
    ],
)
async def test_a_worker_says_who_it_is(api: Api, path: str, body: Any) -> None:
    answer = await api.post(path, body)
    assert (answer.status, answer.error["field"]) == (400, "worker")
    answer = await api.post(path, body, worker_id="")
    assert (answer.status, answer.error["field"]) == (400, "worker")


async def test_a_heartbeat_without_jobs_keeps_a_worker_alive(api: Api) -> None:
    worker_id = await register(api)
    answer = await api.post("/worker/heartbeat", {"jobs": [], "control": True}, worker_id=worker_id)
    assert answer.value == {"jobs": [], "request": ""}
    answer = await api.post("/worker/heartbeat", {"jobs": [], "control": False}, worker_id=worker_id)
    assert answer.value == {"jobs": []}


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
    assert (shown["progress"], shown["progress_message"], shown["argument"]) == (0.5, "half", {"done": b"\xff"})
    assert (await api.get(f"/job/{other}")).value["argument"] == "other"


async def state(api: Api, job_id: str) -> str:
    return str((await api.get(f"/job/{job_id}")).value["status"])


@pytest.mark.parametrize(
    "match",
    [
        b"\x81\xa4name\xa4mail",
        b"\xdf\x00\x00\x00\x01\xd9\x04name\xdb\x00\x00\x00\x04mail",
        b"\x81\xacargument.bin\xc4\x02\x00\xff",
        b"\x81\xacargument.ext\xd4\x05\x00",
        b"\x81\xaaargument.n\xcf\x00\x1f\xff\xff\xff\xff\xff\xff",
        b"\x81\xaaargument.n\xd3\x00\x00\x00\x00\x00\x00\x00\x01",
    ],
)
async def test_the_matcher_passes_byte_for_byte(api: Api, match: bytes) -> None:
    # Past the checks against the document, which has no spelling of its own for binary data.
    body = b"\x82\xa5match" + match + b"\xabconcurrency\x01"
    answer = await asgi(api.app, "PUT", "/constraint/c", {"content-type": MSGPACK}, body)
    assert answer.status == 200, answer.value
    assert value_of(answer.raw, "match") == match
    got = await asgi(api.app, "GET", "/constraints?ids=c", {"accept": MSGPACK}, b"")
    assert value_of(value_of(got.raw, "constraints")[1:], "match") == match
