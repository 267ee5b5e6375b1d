"""What only requests can say wrong: refused with the field by its own name, and nothing has changed.

What scripts refuse is the matter of ``test_errors_change_nothing.py``; codes and their statuses stand in the tests of
what they are about, and ``test_surface.py`` has what the library raises. Functions are called by the short path,
scripts by the long one.
"""

from __future__ import annotations

import msgpack
import pytest
from redis.asyncio import Redis

from bad_data import BY_SCRIPT, data  # noqa: F401
from bad_values import DONE, HOLD, RUNNING, WAITING
from driving.driver import NAMESPACE
from http_support import Api, Pokes
from jqmaster.bundle.built import builtin
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.server.events import EventFeed
from jqmaster.server.http.app import create_app
from jqmaster.server.master import Master


@pytest.fixture
async def api(data):
    async with Redis(unix_socket_path=str(data.socket)) as client:
        engine = Engine(client, NAMESPACE, scripts=builtin("settable"), form=data.form)
        waiting, ended = Waiting(engine, client), Ended(engine, client)
        master = Master(engine, waiting, ended, Pokes(), EventFeed(engine, client))
        yield Api(create_app(master, fast=data.form == "functions"), master)
        await waiting.stop()
        await ended.stop()


PAIR = {"id": RUNNING, "token": HOLD}
SUCCESS = {**PAIR, "type": "success"}
TICKET = {"name": "a", "queue": msgpack.ExtType(5, b"x")}
SPEC = {"match": {"name": "a"}, "concurrency": 1}
# What only a request can say, and the field that the answer names.
OWN = {
    "POST /job": [
        ({"name": "a", "request": "x"}, "request"), ({"name": "a", "priority": 2**64 - 1}, "priority"),
        ({"name": b"a"}, "name"), (TICKET, "queue"), ({"name": "a", "queue": msgpack.Timestamp(1)}, "queue"),
    ],
    "POST /jobs": [
        ([{"name": "a"}, TICKET], "[1].queue"), ({"jobs": [{"name": "a"}, TICKET]}, "jobs[1].queue"),
        ({"job": []}, "jobs"), ({"jobs": [], "what": 1}, "what"), ({"jobs": 5}, "jobs"),
    ],
    f"PATCH /job/{WAITING}": [({"id": DONE}, "id"), ({"name": "b"}, "name")],
    "POST /pick": [
        ({"queues": "a", "timeout": wrong}, "timeout") for wrong in (-1, 301, True, float("nan"), [1], "x")
    ] + [({"queues": "a", "wait": {"on": "x", "ms": 1}}, "wait")],
    "POST /done": [
        ({}, "id"), ({"outcomes": 5}, "outcomes"), ({"outcomes": [5]}, "outcomes[0]"),
        ({"outcomes": [], "id": RUNNING}, "id"), ({**SUCCESS, "error": 1}, "error"), ({**SUCCESS, "blob": 1}, "blob"),
        ({**SUCCESS, "type": "failure", "result": 1}, "result"), ({**SUCCESS, "type": ["success"]}, "type"),
        ({**SUCCESS, "enqueue": []}, "enqueue"), ({**SUCCESS, "enqueue": 5}, "enqueue"),
        ({**SUCCESS, "enqueue": [{"name": "a"}, {"nam": "a"}]}, "enqueue[1].nam"),
        ({"outcomes": [SUCCESS, {**SUCCESS, "error": 1}]}, "outcomes[1].error"),
        ({"outcomes": [], "pick": {"queues": "a", "wait": {"on": "x", "ms": 1}}}, "pick.wait"),
    ],
    "POST /worker/heartbeat": [
        ({"control": True}, "control"), ({"jobs": [[]]}, "jobs[0]"), ({"jobs": [{"argument": 1}]}, "jobs[0].id"),
        ({"jobs": [["x", 1, {"argument": 1}, 5]]}, "jobs[0]"), ({"jobs": "argument"}, "jobs"),
    ] + [
        ({"jobs": [lease | checkpoint]}, f"jobs[0].{wrong}")
        for checkpoint in ({}, {"argument": 1})
        for wrong, lease in {
            "id": {"token": HOLD}, "token": {"id": RUNNING}, "attempt": PAIR | {"attempt": 1},
            "progress": PAIR | {"progress": "x"}, "message": PAIR | {"message": "x" * 1025},
        }.items()
    ] + [({"jobs": [[RUNNING, HOLD, {"progress": "x", "argument": 1}]]}, "jobs[0][2].progress")],
    "POST /release": [
        ({"jobs": [{"id": RUNNING}]}, "jobs[0].token"), ({"jobs": [PAIR | {"progress": 1}]}, "jobs[0].progress"),
    ],
    "POST /queue/a": [({"name": "other"}, "name")],
    "PUT /constraint/c": [
        (SPEC | {"id": "other"}, "id"), (SPEC | {"by": b"name"}, "by"), (SPEC | {"match": None}, "match"), (None, None),
    ],
    "POST /constraint/keyed/hold": [
        ({"seconds": 1, "by": by}, "by") for by in (b"a", msgpack.ExtType(5, b"a"), float("nan"))
    ] + [({"seconds": 1, "by": "a", "id": "keyed"}, "id")],
    "PUT /schedule/s": [({"every": 60, "job": {"name": "a"}, "id": "x"}, "id")],
    "GET /queues": [(f"?count={count}", "count") for count in ("x", "", "9" * 30, "%EF%BC%91")],
    "GET /jobs": [("?brief=maybe", "brief"), ("?from_ms=", "from_ms"), ("?cursor=!", "cursor")],
}  # fmt: skip


@pytest.mark.parametrize("request_", OWN)
async def test_what_only_requests_say(data, api, request_):
    method, target = request_.split()
    headers = {} if target.startswith(("/job", "/queue", "/cons")) else {"worker_id": "w"}
    for said, field in OWN[request_]:
        query, body = (said, None) if isinstance(said, str) else ("", said)
        answer = await api(method, target + query, body, **headers)
        assert (answer.status, answer.error["code"], answer.error.get("field")) == (400, "INVALID", field), said
    data.check_unchanged()
