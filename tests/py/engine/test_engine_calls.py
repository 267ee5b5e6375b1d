"""Calls of the engine by name: what they take, and what they make of the replies."""

from __future__ import annotations

import asyncio

import msgpack
import pytest

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Beat, Enqueued, Job, Note
from jqmaster.errors import Invalid, NotFound
from parts import LONG_S

NIL = b"\xc0"
UNKNOWN = "0" * 14
LOST = "1-0123456789ab"


def success(job: Job, **more: object) -> dict[str, object]:
    return {"id": job.id, "token": job.token, "type": "success", **more}


async def test_heartbeats_carry_notes(engine: Engine) -> None:
    await engine.enqueue([({"name": "a"}, NIL)] * 2)
    one, two = (await engine.pick("w", "a", 2)).jobs
    notes = {two.held: Note(0.5, "half", msgpack.packb([1])), one.held: Note(argument=msgpack.packb([2]))}
    answers, _ = await engine.beat("w", [one.held, two.held, (UNKNOWN, LOST)], notes=notes)
    assert answers == [30000, 30000, "LOST"]
    first, second = await engine.get([one.id, two.id])
    assert first is not None and second is not None
    assert (first["argument"], second["argument"]) == (msgpack.packb([2]), msgpack.packb([1]))
    assert (second["progress"], second["progress_message"]) == (0.5, "half")


async def test_a_beat_tells_what_is_asked(engine: Engine) -> None:
    worker = await engine.register("w", "a")
    assert await engine.beat(worker) == Beat([], "")
    await engine.worker(worker, "quiet")
    assert await engine.beat(worker, [(UNKNOWN, LOST)]) == Beat(["LOST"], "quiet")
    with pytest.raises(NotFound):
        await engine.worker("w" + UNKNOWN, "stop")


async def test_what_is_no_text_harms_none_of_those_who_ask_at_the_same_time(engine: Engine) -> None:
    job, known = msgpack.packb({"name": "a"}), UNKNOWN.encode()
    calls = ("watch", known), ("watch", 5), ("watch", "\udc80"), ("watch", known)
    jobs = ("enqueue", job, NIL), ("enqueue", job, 5), ("enqueue", job, NIL)
    async with asyncio.timeout(LONG_S):
        asked = [engine.raw(*one) for one in (*calls, *jobs)]  # type: ignore[arg-type]
        first, _, _, last, one, _, other = await asyncio.gather(*asked, return_exceptions=True)
    assert (first, last, one[1], other[1]) == ([None], [None], 1, 1)  # type: ignore[index]


async def test_what_follows_an_outcome(engine: Engine) -> None:
    await engine.enqueue([({"name": "a"}, NIL)] * 2)
    one, two = (await engine.pick("w", "a", 2)).jobs
    follow = [({"name": "b"}, NIL), ({"name": "c", "depends": [0]}, NIL)]
    finished = await engine.finish(
        "w",
        [(success(one, move={"name": "b"}), NIL), (success(two), NIL, follow)],
        pick={"queues": "b", "count": 2},
    )
    assert finished.states == ["queued", "done"]
    assert list(finished.enqueued) == [1]
    assert [type(one) for one in finished.enqueued[1]] == [Enqueued, Enqueued]
    assert finished.picked is not None and len(finished.picked.jobs) == 2
    with pytest.raises(Invalid, match=r"outcomes\[0\]\.enqueue\[0\]\.priority"):
        wrong = [({"name": "a", "priority": "x"}, NIL)]
        await engine.finish("w", [(success(finished.picked.jobs[0]), NIL, wrong)])


async def test_a_call_names_what_it_does_not_know(engine: Engine) -> None:
    with pytest.raises(LookupError, match="there is no operation kik, did you mean kick"):
        await engine.call("kik")
    with pytest.raises(TypeError, match=r"kick: no such argument: id, did you mean ids\?; there are: ids, where"):
        await engine.call("kick", id="x")
    with pytest.raises(TypeError, match="history: id is missing"):
        await engine.call("history")
    with pytest.raises(TypeError, match="get: ids: expected a list, got 'x'"):
        await engine.call("get", "x")
    with pytest.raises(TypeError, match="history: id is given twice"):
        await engine.call("history", "x", id="x")
    with pytest.raises(AttributeError):
        engine.nothing  # type: ignore[attr-defined]  # noqa: B018
