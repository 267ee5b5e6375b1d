"""Events as `JQ` gives them, from a master, plain and in coroutines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Event, Note
from jqmaster.errors import Conflict, NotFound, Unavailable
from jqmaster.server.server import Server
from parts import eventually
from surface_support import own, server

__all__ = ["own", "server"]

UNKNOWN = "0" * 14


async def run(own: Engine, queue: str, **outcome: Any) -> str:
    [job] = (await own.pick("w", queue)).jobs
    said = {"id": job.id, "token": job.token, "type": "success", **outcome}
    await own.finish("w", [(said, b"\xc0")])
    return job.id


def follow(server: Server, kind: str, got: list[Event], job: str | None = None, **more: Any) -> asyncio.Task[None]:
    """Adds what comes to `got`, in the background."""

    jq = JQ(server.url)
    of: Any = jq if job is None else jq.handle(job)

    def plain() -> None:
        for event in of.events(**more):
            got.append(event)
            if event.data.get("name") == "last":
                return

    async def twin() -> None:
        async for event in of.aevents(**more):
            got.append(event)
            if event.data.get("name") == "last":
                return

    return asyncio.ensure_future(asyncio.to_thread(plain) if kind == "plain" else twin())


KINDS = pytest.mark.parametrize("kind", ["plain", "async"])


@KINDS
async def test_a_job_is_followed_to_its_end(kind: str, server: Server, own: Engine) -> None:
    [job] = await own.enqueue([({"name": "a", "max_retry": 1, "retry_base": 0}, b"\xc0")])
    got: list[Event] = []
    following = follow(server, kind, got, job.id)
    await eventually(lambda: got)
    await run(own, "a", type="failure")
    await eventually(lambda: len(got) >= 3)
    await own.tick()
    await run(own, "a")
    await asyncio.wait_for(following, 60)
    states = [event.data["state"] for event in got]
    assert states[0] == "queued" and states[-1] == "done" and "retrying" in states
    assert {event.data["id"] for event in got} == {job.id}


@KINDS
async def test_the_progress_of_a_job_is_followed(kind: str, server: Server, own: Engine) -> None:
    spec = {"name": "a", "unique": "k"}
    [job] = await own.enqueue([(spec, b"\xc0")])
    got: list[Event] = []
    following = follow(server, kind, got, job.id)
    await eventually(lambda: got)
    await own.enqueue([(spec, b"\xc0")])
    await own.change([({"id": job.id, "queue": "b"}, b"")])
    [picked] = (await own.pick("w", "b")).jobs
    await own.beat("w", [picked.held], notes={picked.held: Note(0.5, "half way")})
    await own.finish("w", [({"id": job.id, "token": picked.token, "type": "success"}, b"\xc0")])
    await asyncio.wait_for(following, 60)
    told = [(one.data.get("event"), one.data["state"], one.data["queue"]) for one in got[1:]]
    assert told == [
        ("met", "queued", "a"), ("moved", "queued", "b"), (None, "running", "b"), ("progress", "running", "b"),
        (None, "done", "b"),
    ]  # fmt: skip
    assert (got[4].data["progress"], got[4].data["message"]) == (0.5, "half way")


@KINDS
async def test_who_follows_an_ended_job_is_told_at_once(kind: str, server: Server, own: Engine) -> None:
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    await run(own, "a")
    got: list[Event] = []
    await asyncio.wait_for(follow(server, kind, got, job.id), 60)
    assert [event.data["state"] for event in got] == ["done"]
    with pytest.raises(NotFound):
        await follow(server, kind, got, UNKNOWN)


@KINDS
async def test_everything_is_followed(kind: str, server: Server, own: Engine) -> None:
    got: list[Event] = []
    with pytest.raises(Conflict, match="events_max"):
        await follow(server, kind, got)
    await own.config({"events_max": 10_000})
    await own.enqueue([({"name": "first"}, b"\xc0")])
    [first] = await eventually(lambda: _stream(own))
    following = follow(server, kind, got, after="0-0")
    await eventually(lambda: got)
    for _ in range(1500):
        await own.enqueue([({"name": "a"}, b"\xc0")])
    await own.enqueue([({"name": "last"}, b"\xc0")])
    await asyncio.wait_for(following, 60)
    names = [event.data["name"] for event in got]
    assert names == ["first", *["a"] * 1500, "last"]
    assert got[0].id == first
    # Whoever comes back goes on where they were.
    again: list[Event] = []
    await asyncio.wait_for(follow(server, kind, again, after=got[1000].id), 60)
    assert again == got[1001:]


async def _stream(own: Engine) -> list[str]:
    return [entry[0].decode() for entry in await own.redis.xrange(f"{own.namespace}:events")]


@KINDS
async def test_a_gap_is_told(kind: str, server: Server, own: Engine) -> None:
    await own.config({"events_max": 1000})
    await own.enqueue([({"name": "last"}, b"\xc0")])
    got: list[Event] = []
    await follow(server, kind, got, after="1-0")
    assert [event.kind for event in got] == ["missed", "message"]


@KINDS
async def test_followers_are_let_go_when_the_server_stops(
    kind: str, server: Server, own: Engine, redis_url: str
) -> None:
    await own.config({"events_max": 1000})
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    got: list[Event] = []
    both = [follow(server, kind, got, after="0-0"), follow(server, kind, got, job.id)]
    await eventually(lambda: len(got) == 2)
    await asyncio.wait_for(server.stop(), 60)
    for one in both:  # they are told, and may go on after the last event somewhere else
        with pytest.raises(Unavailable, match="ended by the master"):
            await asyncio.wait_for(one, 60)


@KINDS
async def test_events_survive_a_lost_connection_to_redis(kind: str, server: Server, own: Engine) -> None:
    await own.config({"events_max": 1000})
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    got: list[Event] = []
    of_job: list[Event] = []
    following = follow(server, kind, got, after="0-0")
    job_following = follow(server, kind, of_job, job.id)
    await eventually(lambda: got and of_job)
    await own.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await own.redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    await run(own, "a")
    await own.enqueue([({"name": "last"}, b"\xc0")])
    await asyncio.wait_for(following, 60)
    await asyncio.wait_for(job_following, 60)
    assert [event.data["state"] for event in got] == ["queued", "running", "done", "queued"]
    assert of_job[-1].data["state"] == "done"


def test_straight_on_redis_there_are_none(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace)
    for found in (jq.events(), jq.enqueue("a").events()):
        with pytest.raises(Unavailable, match="need a master"):
            next(found)
