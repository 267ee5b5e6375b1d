"""What scripts refuse is refused over HTTP and by the library as well: the same code, the same place by its name.

The cases are those of ``bad_inputs.py``, each in all the requests that can say the same wrong thing. Functions are
called by the short path, scripts by the long one. What has no short path goes the same way both times, so the second
time a part of it does; that scripts refuse as functions do is the matter of ``test_errors_change_nothing.py``.
"""

from __future__ import annotations

import msgpack
import pytest
from redis.asyncio import Redis

from bad_data import BY_SCRIPT, data  # noqa: F401
from bad_requests import asked
from bad_values import DONE, HOLD, RUNNING, WAITING, Raw
from driving.driver import NAMESPACE
from http_support import MSGPACK, Api, Pokes, asgi
from jqmaster.bundle.built import builtin
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.http import Answer, HttpEngine
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import JQError
from jqmaster.server.events import EventFeed
from jqmaster.server.http.app import create_app
from jqmaster.server.http.routes import ROUTES
from jqmaster.server.master import Master

# No request calls them, or none with a map, one wrong id or anything; of a key the master makes a part.
NOT_ASKED = {
    "assign", "audit", "bulks", "export", "get", "grant", "head", "import", "refuse", "setup", "tick", "touch",
    "watch", "webhooks",
}  # fmt: skip
SCRIPTS = sorted(BY_SCRIPT.keys() - NOT_ASKED)
WITH_A_SHORT_PATH = {route.operation.script for route in ROUTES if route.hot}


class Direct(HttpEngine):
    """The library's requests, without a socket on the way."""

    def __init__(self, app):
        super().__init__(["http://jq"])
        self.app = app

    async def send(self, method, path, body=b"", *, headers=None, **_):
        answer = await asgi(self.app, method, path, headers or {"content-type": MSGPACK}, body)
        return Answer(answer.status, answer.raw, False)


@pytest.fixture
async def api(data):
    async with Redis(unix_socket_path=str(data.socket)) as client:
        engine = Engine(client, NAMESPACE, scripts=builtin("settable"), form=data.form)
        waiting, ended = Waiting(engine, client), Ended(engine, client)
        master = Master(engine, waiting, ended, Pokes(), EventFeed(engine, client))
        yield Api(create_app(master, fast=data.form == "functions"), master)
        await waiting.stop()
        await ended.stop()


async def refused_by_http(api, request):
    headers = dict(request.headers)
    answer = await api(request.method, request.target, raw=request.body, **headers)
    if answer.status < 400:
        return answer.status, str(answer.value)
    error = answer.error
    assert error["message"] and "attempt to" not in error["message"], error
    return error["code"], error.get("field")


def is_no_text(value):
    return isinstance(value, Raw) or (isinstance(value, dict) and any(map(is_no_text, value.values())))


def is_same(said, case, expected):
    """Of text that is not UTF-8 a master names what it stands in."""
    field, expected_field = ((path or "").rstrip(".") for path in (said[1], expected[1]))
    is_within = is_no_text(case.value) and expected_field.startswith(field)
    return said[0] == expected[0] and (field == expected_field or is_within)


@pytest.mark.parametrize("script", SCRIPTS)
async def test_over_http(data, api, script):
    problems, count = [], 0
    is_told_apart = data.form == "functions" or script in WITH_A_SHORT_PATH
    for case in BY_SCRIPT[script][:: 1 if is_told_apart else 5]:
        for request in asked(case):
            count += 1
            said = await refused_by_http(api, request)
            if not is_same(said, case, request[4:]):
                problems.append(f"{case.title}: {request.method} {request.target[:80]} {said}, not {request[4:]}"[:300])
    assert not problems, "\n".join([f"{len(problems)} of {count}", *problems[:20]])
    assert count
    data.check_unchanged()


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


async def refused_by_library(library, case):
    """Code and path; None for what no program can say, or the library has no request for."""
    takes_blobs = case.script in ("enqueue", "change")
    try:
        specs = [msgpack.unpackb(one, strict_map_key=False) for one in case.args[:: 1 + takes_blobs]]
        if not all(isinstance(spec, dict) for spec in specs) or len(case.args) % (1 + takes_blobs):
            return None
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    try:
        if takes_blobs:
            said = await getattr(library, case.script)(list(zip(specs, case.args[1::2], strict=True)))
        else:
            said = await library.call(case.script, *case.args)
    except JQError as error:
        return None if "has no request" in error.message else (error.code, error.path)
    return "accepted", str(said)


def is_said_by_library(case, request):
    """In paths, queries and headers it writes values as text, whatever they are."""
    return case.path != "worker" and (request.body or isinstance(case.value, str | int | None))


@pytest.mark.parametrize("data", ["functions"], indirect=True)  # the library cannot see how a master calls them
@pytest.mark.parametrize("script", SCRIPTS)
async def test_by_the_library(data, api, script):
    library = Direct(api.app)
    problems, count = [], 0
    for case in BY_SCRIPT[script]:
        expected = {request[4:] for request in asked(case) if is_said_by_library(case, request)}
        said = await refused_by_library(library, case) if expected else None
        if said is not None:
            count += 1
            if not any(is_same(said, case, one) for one in expected):
                problems.append(f"{case.title}: {said}, not {expected}"[:300])
    assert not problems, "\n".join([f"{len(problems)} of {count}", *problems[:20]])
    data.check_unchanged()
