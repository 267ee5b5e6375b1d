"""What scripts refuse is refused over HTTP as well: the same code, the same place by its name.

The cases are those of ``refusals.py``, one of each error as
`POST /call/<operation>`; and the arguments of each other request, by
its head. What only requests say stands here.
"""

from __future__ import annotations

import msgpack
import pytest
from redis.asyncio import Redis

from driving.driver import NAMESPACE
from http_support import Api, mastering
from jqmaster.bundle.built import builtin
from jqmaster.engine.engine import Engine
from jqmaster.manifest.contract import SERVER
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.app import create_app
from jqmaster.server.http.routes import BY_HAND
from refusal_data import data  # noqa: F401
from refusal_table import BY_SCRIPT
from refusal_values import DONE, HOLD, RUNNING, WAITING, Raw, example, wrong

CALLED = sorted(name for name in BY_SCRIPT if operations()[name].roles != (SERVER,))
# Arguments that no request can say wrong, or that only the server may.
KEPT = {(name, argument) for name, one in operations().items() for argument in one.restricted}
KEPT.add(("finish", "pick.wait"))


@pytest.fixture
async def api(data):
    async with Redis(unix_socket_path=str(data.socket)) as client:
        engine = Engine(client, NAMESPACE, scripts=builtin("settable"), form=data.form)
        async with mastering(engine) as master:
            yield Api(create_app(master), master)


async def refused(api, method, target, body, **headers):
    answer = await api(method, target, raw=body, worker_id="w", **headers)
    if answer.status < 400:
        return answer.status, str(answer.value)
    error = answer.error
    assert error["message"] and "attempt to" not in error["message"], error
    return error["code"], error.get("field")


@pytest.mark.parametrize("data", ["functions"], indirect=True)  # scripts: test_errors_change_nothing.py
@pytest.mark.parametrize("script", CALLED)
async def test_a_call_is_refused_as_the_script_refuses_it(data, api, script):
    problems = []
    for case in {(case.code, case.path): case for case in BY_SCRIPT[script]}.values():
        if case.path == "actor":
            continue  # the server says who it is
        body = msgpack.packb(
            [one.encode("utf-8", "surrogateescape") if isinstance(one, str) else one for one in case.args]
        )
        said = await refused(api, "POST", f"/call/{script}", body)
        is_servers = said[0] == "FORBIDDEN" and any((script, name) in KEPT for name in [said[1]])
        if said != (case.code, case.path or None) and not is_servers:
            problems.append(f"{case.title}: {said}, not {(case.code, case.path)}"[:300])
    assert not problems, "\n".join([f"{len(problems)} of {len(BY_SCRIPT[script])}", *problems[:20]])
    data.check_unchanged()


def wrong_of(operation, name):
    """Some values that are refused as a whole."""
    known = [argument for argument in operation.arguments if argument.name == name]
    return [value for place, value in wrong(known[0]) if not place][:12] if known else []


def translated():
    """The requests that the head of a script alone says."""
    for operation in operations().values():
        for route in operation.routes:
            if f"{route.method} {route.path}" not in BY_HAND and route.arguments:
                yield pytest.param(operation, route, id=f"{route.method} {route.path}")


@pytest.mark.parametrize("data", ["functions"], indirect=True)
@pytest.mark.parametrize(("operation", "route"), list(translated()))
async def test_each_argument_of_a_request_is_refused_by_its_name(data, api, operation, route):
    known = operation.argument(route.place.partition("[")[0].partition(".")[0]) if route.place else None
    named = example(known) if known and known.type != "Where" else ""
    named = named[0] if isinstance(named, list) else named
    path = route.path.replace("{" + route.place + "}", named if isinstance(named, str) else "a")
    is_query = not route.has_body
    names = {route.parameter, "id", "ids", *route.arguments}
    for name in route.arguments:
        is_text = is_query and operation.argument(name.partition(".")[0]).type in ("name", "queue", "text", "cursor")
        for value in [] if is_text else wrong_of(operation, name):
            is_sayable = isinstance(value, str | int | float) and not str(value).isdigit() if is_query else True
            if isinstance(value, Raw) or not is_sayable or str(value).lower() in ("true", "false", "", "x"):
                continue
            try:
                body = None if is_query else msgpack.packb({name: value})
            except (TypeError, ValueError, OverflowError):
                continue
            query = f"?{name}={value}" if is_query else ""
            code, field = await refused(api, route.method, path + query, body)
            # What else is missing may be said first.
            assert code in ("INVALID", "NOTFOUND"), (name, value, code)
            assert field is None or field.partition("[")[0].partition(".")[0] in names, (name, value, field)
    data.check_unchanged()


PAIR = {"id": RUNNING, "token": HOLD}
SUCCESS = {**PAIR, "type": "success"}
SPEC = {"match": {"name": "a"}, "concurrency": 1}
# What only a request can say, and the field that the answer names.
OWN = {
    "POST /job": [
        ({"name": "a", "request": "x"}, "request"), ({"name": 1}, "name")],
    "POST /jobs": [
        ({"job": []}, "job"), ({}, "jobs"), ({"jobs": [], "what": 1}, "what"), ({"jobs": 5}, "jobs"),
    ],
    f"PATCH /job/{WAITING}": [({"id": DONE}, "id"), ({"name": "b"}, "name")],
    "POST /pick": [
        ({"queues": "a", "timeout": wrong}, "timeout") for wrong in (-1, 301, True, float("nan"), [1], "x")
    ] + [({"queues": "a", "wait": {"on": "x", "ms": 1}}, "wait")],
    "POST /done": [
        ({}, "outcomes"), ({"outcomes": 5}, "outcomes"), ({"outcomes": [5]}, "outcomes[0]"),
        ({"outcomes": [], "id": RUNNING}, "id"), ({"outcomes": [{}]}, "outcomes[0].id"),
        *[
            ({"outcomes": [SUCCESS, SUCCESS | wrong]}, f"outcomes[1].{field}")
            for wrong, field in (
                ({"error": 1}, "error"), ({"blob": 1}, "blob"), ({"type": "failure", "result": 1}, "result"),
                ({"type": ["success"]}, "type"), ({"enqueue": []}, "enqueue"), ({"enqueue": 5}, "enqueue"),
                ({"enqueue": [{"name": "a"}, {"nam": "a"}]}, "enqueue[1].nam"),
            )
        ],
    ],
    "POST /worker/heartbeat": [
        ({"control": True}, "control"), ({"jobs": [[]]}, "jobs[0]"), ({"jobs": [{"id": RUNNING}]}, "jobs[0]"),
        ({"jobs": "argument"}, "jobs"), ({"jobs": [], "arguments": 5}, "arguments"),
        ({"jobs": [[RUNNING, HOLD, {"progress": "x", "argument": 0}]], "arguments": [1]}, "jobs[0][2].progress"),
    ],
    "POST /release": [({"jobs": [PAIR]}, "jobs[0]")],
    "POST /queue/a": [({"name": "other"}, "name")],
    "PUT /constraint/c": [
        (SPEC | {"id": "other"}, "id"), (SPEC | {"match": None}, "match"), (None, None),
    ],
    "POST /constraint/keyed/hold": [
        ({"seconds": 1, "by": by}, "by") for by in (float("nan"), ["a"])
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
