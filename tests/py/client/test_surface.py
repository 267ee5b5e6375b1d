"""All that `JQ` and jobs can be asked, straight on Redis and by a master, plain and in coroutines."""

from __future__ import annotations

import inspect
from datetime import timedelta

import msgpack
import pytest

from jqmaster import JQ, Handle, Task
from jqmaster.engine.http import Answer
from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, Lost, NotFound, Unavailable, Version
from surface_support import Call, call, jq, own, put, server

__all__ = ["call", "jq", "own", "server"]

UNKNOWN = "0" * 14
TWINS = [
    pytest.param(kind, name, id=f"{kind.__name__}.{name}")
    for kind in (JQ, Handle, Task)
    for name in dir(kind)
    if name[:1] != "_" and hasattr(kind, "a" + name) and callable(getattr(kind, name))
]


@pytest.mark.parametrize(("kind", "name"), TWINS)
def test_twins_have_the_same_signature_and_text(kind: type, name: str) -> None:
    plain, twin = getattr(kind, name), getattr(kind, "a" + name)
    assert list(inspect.signature(plain).parameters.values()) == list(inspect.signature(twin).parameters.values())
    assert (plain.__name__, plain.__qualname__) == (name, twin.__qualname__.replace(".a" + name, "." + name))
    assert not inspect.iscoroutinefunction(plain) and not inspect.isasyncgenfunction(plain)
    assert name == "burst" or plain.__doc__ == twin.__doc__ is not None


def test_no_method_that_asks_is_without_its_twin() -> None:
    members = [(kind, name, getattr(kind, name)) for kind in (JQ, Handle) for name in dir(kind) if name[:1] != "_"]
    asking = [
        (kind, name)
        for kind, name, one in members
        if name != "aengine" and (inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one))
    ]
    assert len(asking) > 10
    assert [(kind, name) for kind, name in asking if name[:1] != "a" or not hasattr(kind, name[1:])] == []


async def test_changing_a_job(jq: JQ, call: Call) -> None:
    [job] = await put(jq)
    assert await call("change", of=job, priority=-2, argument=None, delay=timedelta(seconds=50)) == "scheduled"
    shown = await call("document", of=job)
    assert (shown["priority"], shown["argument"]) == (-2, None)


async def test_operations_by_their_names(jq: JQ, call: Call) -> None:
    """Each has its own tests; here is how they are asked, with values unpacked."""
    [job] = await put(jq, unique="k")
    assert (await call("call", "get", [job.id, UNKNOWN]))[0]["argument"] == 0
    assert (await call("call", "kick", where={"queue": "a"})).cursor == ""
    for name in ("b", "c"):
        assert (await call("call", "queue", name, paused=True))["paused"] is True
    assert [queue["name"] for queue in await call("each", "queues", count=2)] == ["a", "b", "c"]
    assert (await jq.aoperations.grant("ann", ["viewer"], ttl=60))["key"].startswith("jq_")
    with pytest.raises(LookupError, match="no operation invoice"):
        await call("call", "invoice", {"customer": "acme"})


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (400, "INVALID", Invalid), (404, "NOTFOUND", NotFound), (409, "CONFLICT", Conflict), (409, "LOST", Lost),
        (429, "FULL", Full), (503, "VERSION", Version), (503, "UNAVAILABLE", Unavailable),
        (500, "INTERNAL", Internal), (502, "", Unavailable),
    ],
)  # fmt: skip
def test_answers_that_are_errors_are_raised(status: int, code: str, raised: type[JQError]) -> None:
    with pytest.raises(JQError) as caught:
        Answer(status, msgpack.packb({"error": {"code": code, "message": "why"}}), "").body  # noqa: B018
    assert (type(caught.value), caught.value.message) == (raised, "why")
