"""What only requests say wrong is refused with the name that it has there; all else scripts refuse."""

from __future__ import annotations

from typing import Any

import pytest

from http_support import Api, api, master  # noqa: F401

SUCCESS = {"id": "00000000000001", "token": "1-0123456789ab", "type": "success"}
OWN: list[tuple[str, Any, str]] = [
    ("POST /job", {"name": "a", "request": "x"}, "request"),
    ("POST /job", {"name": 1}, "name"),
    ("POST /jobs", {"jobs": 5}, "jobs"),
    ("POST /jobs", {"jobs": [{"name": "a"}], "what": 1}, "what"),
    ("POST /jobs/change", {"jobs": [], "what": 1}, "what"),
    ("POST /jobs/change", {"jobs": [{"id": "00000000000001", "priority": "x"}]}, "jobs[0].priority"),
    *[("POST /pick", {"queues": "a", "timeout": wrong}, "timeout") for wrong in (-1, 301, float("nan"), [1], "x")],
    ("POST /done", {"outcomes": 5}, "outcomes"),
    ("POST /done", {"outcomes": [5]}, "outcomes[0]"),
    ("POST /done", {"outcomes": [SUCCESS | {"enqueue": 5}]}, "outcomes[0].enqueue"),
    ("POST /done", {"outcomes": [SUCCESS | {"enqueue": [{"nam": "a"}]}]}, "outcomes[0].enqueue[0].nam"),
    ("POST /worker/heartbeat", {"jobs": [], "arguments": 5}, "arguments"),
    ("POST /queue/a", {"name": "other"}, "name"),
    ("PUT /constraint/c", {"match": None, "concurrency": 1}, "match"),
    ("PUT /constraint/c", None, "concurrency"),
    ("POST /schedule/s", {"every": 60, "job": {"name": "a"}, "id": "x"}, "id"),
    *[(f"GET /queues?count={count}", None, "count") for count in ("x", "", "9" * 30, "%EF%BC%91")],
    ("GET /queues?count=1&count=2", None, "count"),
    ("GET /jobs?brief=maybe", None, "brief"),
    ("GET /jobs?from_ms=", None, "from_ms"),
    ("GET /jobs?worker=", None, "worker"),
    ("GET /jobs?match={", None, "match"),
]


@pytest.mark.parametrize(("request_", "body", "field"), OWN)
async def test_what_only_requests_say(api: Api, request_: str, body: Any, field: str) -> None:
    method, target = request_.split()
    headers = {"worker_id": "w"} if target in ("/pick", "/done", "/worker/heartbeat") else {}
    answer = await api(method, target, body, **headers)
    assert (answer.status, answer.error["code"], answer.error.get("field")) == (400, "INVALID", field)
    assert (await api.get("/queues")).value["queues"] == []
