"""Constraints, holds, fair queues and explanations over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgpack
import pytest

from http_support import JSON, MSGPACK, Answer, Api, api, asgi, master  # noqa: F401
from test_http_operation import ODD_NAMES
from test_http_wire import value_of

MAIL = {"match": {"name": "mail"}, "concurrency": 1}


async def constrain(api: Api, constraint_id: str = "c", body: Any = None, **fields: Any) -> dict[str, Any]:
    answer = await api("PUT", f"/constraint/{quote(constraint_id, safe='')}", {**(body or MAIL), **fields})
    assert answer.status == 200, answer.value
    document: dict[str, Any] = answer.value
    return document


async def raw_put(api: Api, body: bytes) -> Answer:
    """Past the checks against the document, which has no spelling of its own for binary data."""
    return await asgi(api.app, "PUT", "/constraint/c", {"content-type": MSGPACK}, body)


async def test_a_constraint_limits_from_its_answer_on(api: Api) -> None:
    for _ in range(3):
        await api.enqueue("mail")
    other = await api.enqueue("other")
    assert (await constrain(api))["running"] == 0
    first, free = await api.pick(count=10)
    assert (first["name"], free["id"]) == ("mail", other)
    assert await api.pick(count=10) == []
    assert (await api.done(first)).status == 204
    assert len(await api.pick(count=10)) == 1
    assert (await api("DELETE", "/constraint/c")).status == 204
    assert len(await api.pick(count=10)) == 1


async def test_the_document_shows_the_definition_as_given(api: Api) -> None:
    definition = {
        "match": {
            "name": ["mail.*", "post"], "argument.size": {"lt": 1e6},
            "any": [{"tags": "a"}, {"not": {"queue": "b"}}],
        },
        "by": ["argument.customer", "name"], "concurrency": 1, "order": "strict",
        "rate": {"limit": 100, "period": 0.5, "smooth": True}, "cost": "argument.size",
    }  # fmt: skip
    put = await constrain(api, "c", definition)
    got = (await api.get("/constraint/c")).value
    [listed] = (await api.get("/constraints")).value["constraints"]
    assert put == got == listed
    assert {name: put[name] for name in definition} == definition
    assert (put["id"], put["running"], put["keys"]) == ("c", 0, 0)


async def test_putting_again_replaces_it_whole(api: Api) -> None:
    await constrain(api, by="argument.a", rate={"limit": 1, "period": 1})
    again = await constrain(api, body={"match": {"queue": "q"}, "concurrency": 7})
    assert (again["match"], again["concurrency"]) == ({"queue": "q"}, 7)
    assert "by" not in again and "rate" not in again
    assert len((await api.get("/constraints")).value["constraints"]) == 1


@pytest.mark.parametrize("constraint_id", ODD_NAMES)
async def test_a_constraint_of_any_id(api: Api, constraint_id: str) -> None:
    path = f"/constraint/{quote(constraint_id, safe='')}"
    for method, rest, body in (("GET", "", None), ("DELETE", "", None), ("GET", "/usage", None),
                               ("POST", "/hold", {"seconds": 1})):  # fmt: skip
        answer = await api(method, path + rest, body)
        assert (answer.status, answer.error["code"], answer.error["field"]) == (404, "NOTFOUND", "id")
    assert (await constrain(api, constraint_id))["id"] == constraint_id
    assert (await api.get(path)).value["id"] == constraint_id
    assert (await api.get(f"{path}/usage")).value["cursor"] == ""
    job_id = await api.enqueue("mail")
    await api.pick()
    body = {"jobs": [[job_id, api.tokens[job_id]]], "hold": {constraint_id: 60}}
    answer = await api.post("/release", body, worker_id="w")
    assert answer.value == {"jobs": ["queued"]}
    assert await api.pick() == []
    [held] = (await api.get(f"/job/{job_id}/explain")).value["constraints"]
    assert (held["id"], held["open"]) == (constraint_id, False)
    assert (await api.post(f"{path}/hold", {"seconds": 0})).status == 200
    assert len(await api.pick()) == 1
    assert (await api("DELETE", path)).status == 204
    assert (await api.get(path)).status == 404


async def test_constraints_come_in_pages_by_id(api: Api) -> None:
    for name in ("c", "a", "b"):
        await constrain(api, name)
    first = (await api.get("/constraints?count=2")).value
    rest = (await api.get(f"/constraints?cursor={quote(first['cursor'])}")).value
    assert [one["id"] for one in first["constraints"] + rest["constraints"]] == ["a", "b", "c"]
    assert rest["cursor"] == ""


# Three spellings of one and the same matcher, and values that JSON has no word for.
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
    answer = await raw_put(api, b"\x82\xa5match" + match + b"\xabconcurrency\x01")
    assert answer.status == 200, answer.value
    assert value_of(answer.raw, "match") == match
    got = await asgi(api.app, "GET", "/constraint/c", {"accept": MSGPACK}, b"")
    assert value_of(got.raw, "match") == match


async def test_what_the_argument_holds_decides(api: Api) -> None:
    match = {"argument.blob": b"\x00", "argument.n": {"ge": 2**63}}
    assert (await raw_put(api, msgpack.packb({**MAIL, "match": match}))).status == 200
    matched = {"blob": b"\x00", "n": 2**64 - 1}
    for argument in (matched, matched, {**matched, "blob": "\x00"}, {**matched, "n": 2**63 - 1}, [1], None):
        await api.enqueue("mail", argument=argument)
    picked = [job["argument"] for job in await api.pick(count=10)]
    assert picked.count(matched) == 1 and len(picked) == 5


async def test_json_all_the_way(api: Api) -> None:
    definition = {
        "match": {
            "argument.blob": {"$bin": "AP8="},
            "argument.n": {"ge": 2**63, "lt": {"$float": "inf"}},
            "not": {"argument.text": {"glob": {"$str": "/yo="}}},
        },
        "by": "argument.who", "concurrency": 1,
    }  # fmt: skip
    answer = await api("PUT", "/constraint/c", definition, content_type=JSON)
    assert (answer.status, answer.headers["content-type"]) == (200, JSON)
    assert {name: answer.value[name] for name in definition} == definition
    assert (await api.get("/constraint/c", accept=JSON)).value["match"] == definition["match"]
    who = {"$bin": "AQ=="}
    job = {"name": "mail", "argument": {"blob": {"$bin": "AP8="}, "n": 2**63, "who": who}}
    await api.post("/job", job, content_type=JSON)
    [picked] = await api.pick()
    [key] = (await api.get("/constraint/c/usage", accept=JSON)).value["keys"]
    assert (key["by"], key["running"]) == (who, 1)
    job_id = (await api.post("/job", job, content_type=JSON)).value["job_id"]
    explained = (await api.get(f"/job/{job_id}/explain", accept=JSON)).value
    assert (explained["held"], explained["constraints"][0]["by"]) == (True, who)
    body = {"jobs": [[picked["id"], picked["token"]]], "hold": {"c": 60}}
    answer = await api.post("/release", body, content_type=JSON, worker_id="w")
    assert answer.value == {"jobs": ["queued"]}


async def test_each_value_has_room_of_its_own(api: Api) -> None:
    await constrain(api, by="argument.who")
    for who in ("a", "a", 7, 7, None):
        await api.enqueue("mail", argument={"who": who})
    await api.enqueue("mail", argument=None)
    assert [job["argument"]["who"] for job in await api.pick(count=10)] == ["a", 7, None]
    shown = (await api.get("/constraint/c")).value
    assert (shown["running"], shown["keys"]) == (3, 3)
    keys = await usage(api, "c", count=2)
    assert sorted(((key["by"], key["running"]) for key in keys), key=str) == [("a", 1), (7, 1), (None, 1)]


async def usage(api: Api, constraint_id: str, count: int) -> list[dict[str, Any]]:
    """All keys, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        path = f"/constraint/{constraint_id}/usage?count={count}"
        page = (await api.get(path + (f"&cursor={quote(cursor)}" if cursor else ""))).value
        assert len(page["keys"]) <= count
        found += page["keys"]
        cursor = page["cursor"]
        if not cursor:
            return found


async def test_two_values_make_one_key(api: Api) -> None:
    await constrain(api, by=["queue", "argument.who"])
    for queue, who in (("q", "a"), ("q", "a"), ("r", "a"), ("q", "b")):
        await api.enqueue("mail", queue=queue, argument={"who": who})
    assert len(await api.pick(count=10)) == 3
    assert sorted(key["by"] for key in await usage(api, "c", 100)) == [["q", "a"], ["q", "b"], ["r", "a"]]
    answer = await api.post("/constraint/c/hold", {"by": ["q", "b"], "seconds": 5})
    assert answer.status == 200
    answer = await api.post("/constraint/c/hold", {"by": ["q"], "seconds": 5})
    assert (answer.status, answer.error["field"]) == (400, "by")


async def test_the_use_of_a_rate_is_shown(api: Api) -> None:
    await constrain(api, body={"match": {"name": "mail"}, "rate": {"limit": 2, "period": 1000}})
    for _ in range(3):
        await api.enqueue("mail")
    assert len(await api.pick(count=10)) == 2
    shown = (await api.get("/constraint/c")).value
    assert (shown["starts"], shown["running"], shown["held"], shown["lanes"]) == (2, 2, 1, 1)
    [key] = await usage(api, "c", 100)
    assert "by" not in key and key["opens_ms"] == shown["opens_ms"]


async def test_a_hold_closes_one_key(api: Api) -> None:
    await constrain(api, by="argument.who", concurrency=5)
    answer = await api.post("/constraint/c/hold", {"by": "a", "seconds": 1000})
    until_ms = answer.value["until_ms"]
    for who in ("a", "b"):
        await api.enqueue("mail", argument={"who": who})
    assert [job["argument"]["who"] for job in await api.pick(count=10)] == ["b"]
    held = next(key for key in await usage(api, "c", 100) if key["by"] == "a")
    assert held["opens_ms"] == until_ms
    assert (await api.post("/constraint/c/hold", {"by": "a", "seconds": 0})).status == 200
    assert [job["argument"]["who"] for job in await api.pick(count=10)] == ["a"]


@pytest.mark.parametrize("who", ["ä", "", 5, 1.5, -1, 2**64 - 1, True, None, "x" * 300])
async def test_any_value_that_a_spec_can_hold_names_a_key(api: Api, who: Any) -> None:
    await constrain(api, by="argument.who", concurrency=5)
    job_id = await api.enqueue("mail", argument={"who": who})
    assert (await api.post("/constraint/c/hold", {"by": who, "seconds": 1000})).status == 200
    assert await api.pick() == []
    assert (await api.get(f"/job/{job_id}/explain")).value["held"] is True
    answer = await api.post("/constraint/c/hold", {"by": who, "seconds": 0}, content_type=JSON)
    assert answer.status == 200
    assert len(await api.pick()) == 1


async def test_a_release_holds_its_key_only(api: Api) -> None:
    await constrain(api, by="argument.who", concurrency=5)
    for who in ("a", "a", "b"):
        await api.enqueue("mail", argument={"who": who})
    [job] = await api.pick()
    body = {"jobs": [{"id": job["id"], "token": job["token"]}], "hold": {"c": 1000}}
    for _ in range(2):
        answer = await api.post("/release", body, worker_id="w")
        assert answer.value == {"jobs": ["queued"]}
    assert [job["argument"]["who"] for job in await api.pick(count=10)] == ["b"]
    assert (await api.get(f"/job/{job['id']}")).value["retry_count"] == 0


async def test_tags(api: Api) -> None:
    await constrain(api, body={"match": {"tags": "llm"}, "concurrency": 1})
    job_id = await api.enqueue("a", tags=["llm", "ä/b"])
    await api.enqueue("b", tags=["llm"])
    await api.enqueue("c")
    assert [job["name"] for job in await api.pick(count=10)] == ["a", "c"]
    assert (await api.get(f"/job/{job_id}")).value["tags"] == ["llm", "ä/b"]
    for wrong in ([], ["a", "a"], ["a", ""], "a", [5], {"a": 1}):
        answer = await api.post("/job", {"name": "a", "tags": wrong})
        assert (answer.status, answer.error["field"].partition("[")[0]) == (400, "tags")


async def test_a_fair_queue(api: Api) -> None:
    fair = [{"by": "argument.who", "weights": {"a": 2}}, {"by": "argument.kind"}]
    answer = await api("PATCH", "/queue/mail", {"fair": fair})
    assert (answer.status, answer.value["fair"]) == (200, fair)
    assert (await api.get("/queue/mail")).value["fair"] == fair
    [listed] = (await api.get("/queues", accept=JSON)).value["queues"]
    assert listed["fair"] == fair
    for who in ("a", "a", "a", "a", "b", "b"):
        await api.enqueue("mail", argument={"who": who})
    picked = [job["argument"]["who"] for job in await api.pick("mail", count=6)]
    assert picked == ["a", "b", "a", "a", "b", "a"]
    answer = await api.post("/queue/mail", {"fair": []})
    assert answer.value.get("fair", []) == []


async def test_why_a_job_waits(api: Api) -> None:
    await constrain(api, by="argument.who", rate={"limit": 5, "period": 60})
    ids = [await api.enqueue("mail", argument={"who": "a"}) for _ in range(3)]
    await api.pick()
    await api.post("/worker", {"name": "w", "queues": "m*", "url": "http://127.0.0.1:1"})
    explained = (await api.get(f"/job/{ids[2]}/explain")).value
    assert {name: explained[name] for name in ("id", "status", "queue", "name", "paused", "held")} == {
        "id": ids[2], "status": "queued", "queue": "mail", "name": "mail", "paused": False, "held": True
    }  # fmt: skip
    [constraint] = explained["constraints"]
    assert constraint["id"] == "c" and constraint["by"] == "a" and constraint["open"] is False
    assert (constraint["concurrency"], constraint["running"], constraint["starts"]) == (1, 1, 1)
    assert (explained["ahead"], explained["workers"], explained["running"]) == (1, 1, 1)
    assert "start_ms" not in explained
    await api.post("/queue/mail/pause")
    assert (await api.get(f"/job/{ids[1]}/explain")).value["paused"] is True


async def test_an_explanation_for_every_state(api: Api) -> None:
    later = await api.enqueue("mail", delay=1000)
    shown = (await api.get(f"/job/{later}/explain")).value
    assert (shown["status"], shown["held"], shown["constraints"]) == ("scheduled", False, [])
    assert shown["start_ms"] == (await api.get(f"/job/{later}")).value["due_ms"]
    job_id = await api.enqueue("mail", max_retry=0)
    [job] = await api.pick()
    assert (await api.get(f"/job/{job_id}/explain")).value["status"] == "running"
    await api.done(job)
    assert (await api.get(f"/job/{job_id}/explain")).value["status"] == "done"
    for unknown in ("00000000000001", "nonsense", "a%2Fb", "%00"):
        answer = await api.get(f"/job/{unknown}/explain")
        assert (answer.status, answer.error["code"]) == (404, "NOTFOUND")
