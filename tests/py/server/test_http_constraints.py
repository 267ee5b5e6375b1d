"""Constraints, holds, fair queues and explanations over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

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
    assert (await api.done(first)).status == 200
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
