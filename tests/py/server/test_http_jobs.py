"""Requests about jobs become calls of scripts, and replies of scripts answers: each form once."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack
import pytest

from http_support import JSON, Api, api, master, unpack  # noqa: F401

UNKNOWN = "0" * 14


async def test_a_request_token_in_the_body_is_the_same(api: Api) -> None:
    body = {"jobs": [{"name": "mail"}], "request": "r1"}
    first = await api.post("/jobs", body)
    assert first.value == (await api.post("/jobs", body)).value
    assert first.value == (await api.post("/jobs", body, idempotency_key="r1")).value


async def test_a_job_that_is_there_is_not_made_again(api: Api) -> None:
    first, again = [await api.post("/job", {"name": "a", "unique": "k"}) for _ in range(2)]
    assert (first.status, again.status, again.value) == (201, 200, first.value)


async def test_an_overlong_key_is_refused(api: Api) -> None:
    answer = await api.post("/job", {"name": "mail"}, idempotency_key="k" * 201)
    assert (answer.status, answer.error["field"]) == (400, "request")


async def test_an_unknown_field_comes_with_a_suggestion(api: Api) -> None:
    answer = await api.post("/job", {"name": "mail", "prioritty": 1})
    assert "priority" in answer.error["message"].replace("prioritty", "")


async def test_a_full_queue_asks_to_come_back(api: Api) -> None:
    await api.post("/queue/mail", {"max_waiting": 1})
    await api.enqueue("mail")
    answer = await api.post("/job", {"name": "mail"})
    assert (answer.status, answer.error["code"], answer.error["field"]) == (429, "FULL", "queue")
    assert int(answer.headers["retry-after"]) >= 1


async def test_concurrent_enqueues_all_get_their_own_answer(api: Api) -> None:
    async def one(n: int) -> Any:
        fields = {"name": "mail", "argument": n} | ({"priority": "x"} if n % 10 == 3 else {})
        return n, await api.post("/job", fields)

    answers = await asyncio.gather(*(one(n) for n in range(100)))
    for n, answer in answers:
        if n % 10 == 3:
            assert (answer.status, answer.error["field"]) == (400, "priority")
        else:
            shown = (await api.get(f"/job/{answer.value['job_id']}")).value
            assert shown["argument"] == n


@pytest.mark.parametrize("path", ["", "/result", "/history", "/polling?timeout=0"])
@pytest.mark.parametrize("job_id", [UNKNOWN, "nonsense", "%00", "a%2Fb", "x" * 3000, "%F0%9F%98%80"])
async def test_an_unknown_job_is_not_found(api: Api, path: str, job_id: str) -> None:
    answer = await api.get(f"/job/{job_id}{path}")
    assert (answer.status, answer.error["code"]) == (404, "NOTFOUND")


async def test_the_result_is_bare_and_does_not_wait(api: Api) -> None:
    job_id = await api.enqueue(keep_result=True)
    early = await api.get(f"/job/{job_id}/result")
    assert (early.status, early.error["message"]) == (409, "the job is queued and has no result")
    [job] = await api.pick()
    assert (await api.done(job, result=[1, {"a": b"\x00"}])).status == 200
    answer = await api.get(f"/job/{job_id}/result")
    assert answer.value == [1, {"a": b"\x00"}]
    shown = (await api.get(f"/job/{job_id}")).value
    assert (shown["status"], shown["result"]) == ("done", [1, {"a": b"\x00"}]) and "error" not in shown


async def test_polling_answers_when_the_job_ends(api: Api) -> None:
    job_id = await api.enqueue(keep_result=True)
    polling = [asyncio.create_task(api.get(f"/job/{job_id}/polling?timeout=20")) for _ in range(3)]
    [job] = await api.pick()
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in polling)
    await api.done(job, result="made")
    for answer in await asyncio.gather(*polling):
        assert (answer.status, answer.value["status"], answer.value["result"]) == (200, "done", "made")
    answer = await api.get(f"/job/{job_id}/polling")
    assert answer.value["status"] == "done"


async def test_polling_gives_up_in_time(api: Api) -> None:
    job_id = await api.enqueue()
    for timeout in ("0", "0.05"):
        answer = await api.get(f"/job/{job_id}/polling?timeout={timeout}")
        assert (answer.status, answer.error["code"]) == (408, "TIMEOUT")
        assert "queued" in answer.error["message"]


async def test_an_index_in_depends_never_means_a_strangers_job(api: Api) -> None:
    strangers = [api.post("/job", {"name": "a"}) for _ in range(30)]
    dependent = api.post("/job", {"name": "b", "depends": [0]})
    *_, answer = await asyncio.gather(*strangers, dependent)
    assert (answer.status, answer.error["code"]) == (400, "INVALID")


async def test_json_all_the_way(api: Api) -> None:
    body = {"name": "mail", "argument": {"b": {"$bin": "AP8="}, "n": 1.0}, "keep_result": True}
    answer = await api.post("/job", body, content_type=JSON)
    assert (answer.status, answer.headers["content-type"]) == (201, JSON)
    job_id = answer.value["job_id"]
    assert (await api.get(f"/job/{job_id}", accept=JSON)).value["argument"] == body["argument"]
    assert (await api.get(f"/job/{job_id}")).value["argument"] == {"b": b"\x00\xff", "n": 1.0}
    picked = await api.post("/pick", {"queues": "*", "timeout": None}, content_type=JSON, worker_id="w")
    [job] = picked.value["jobs"]
    assert job["argument"] == body["argument"]
    outcome = {"id": job["id"], "token": job["token"], "type": "success", "result": {"$msgpack": "y3/4AAAAAAAA"}}
    assert (await api.post("/done", {"outcomes": [outcome]}, content_type=JSON, worker_id="w")).status == 200
    assert (await api.get(f"/job/{job_id}/result", accept=JSON)).value == {"$msgpack": "y3/4AAAAAAAA"}
    assert str(unpack((await api.get(f"/job/{job_id}/result")).raw)) == "nan"


async def test_an_argument_is_changed_unread(api: Api) -> None:
    job_id = await api.enqueue("mail", argument=1)
    odd = b"\xd3" + (5).to_bytes(8, "big")  # an integer of more bytes than it needs
    body = b"\x81\xa4jobs\x91\x82\xa2id" + msgpack.packb(job_id) + b"\xa8argument" + odd
    assert (await api.post("/jobs/change", raw=body)).value == {"jobs": ["queued"]}
    assert odd in (await api.get(f"/job/{job_id}")).raw
