"""What docs/protocol.md tells authors of clients that send again: answers that look wrong, and are right."""

from __future__ import annotations

from typing import Any

import pytest

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Job
from settable import SettableEngine

NIL = b"\xc0"


@pytest.fixture
async def enqueue(engine: Engine) -> Any:
    async def enqueue(**spec: Any) -> str:
        [job] = await engine.enqueue([({"name": "a", **spec}, NIL)])
        return job.id

    return enqueue


async def take(engine: Engine, queue: str = "a") -> Job:
    [job] = (await engine.pick("w", queue)).jobs
    return job


async def finish(engine: Engine, job: Job, **more: Any) -> str:
    said = {"id": job.id, "token": job.token, "type": "success", **more}
    return (await engine.finish("w", [(said, NIL)])).states[0]


async def state(engine: Engine, job_id: str) -> str:
    [found] = await engine.get([job_id])
    assert found is not None
    return str(found["status"])


async def test_a_release_that_comes_again_late_is_lost(engine: Engine, enqueue: Any) -> None:
    await enqueue()
    first = await take(engine)
    assert await engine.release("w", [first.held]) == ["queued"]
    assert await engine.release("w", [first.held]) == ["queued"]
    second = await take(engine)
    assert await engine.release("w", [first.held]) == ["queued"]  # and the second runs on
    assert await finish(engine, second) == "done"
    assert await engine.release("w", [first.held]) == ["LOST"]
    assert await state(engine, first.id) == "done"


async def test_a_lapse_spends_a_retry(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "a", "timeout": 1, "max_retry": 0}, NIL)])
    job = await take(settable)
    await settable.advance(60)
    await settable.tick()
    [found] = await settable.get([job.id])
    assert found is not None
    assert (found["status"], found["retry_count"], found["reason"]) == ("error", 1, "timeout")


async def test_who_waits_for_a_failed_job_that_was_removed_waits_on(engine: Engine, enqueue: Any) -> None:
    failing = await enqueue(max_retry=0)
    waiting = await enqueue(name="b", depends=[failing])  # if_failed is wait
    assert await finish(engine, await take(engine), type="failure") == "error"
    assert await engine.discard([failing]) == ["error"]
    await engine.tick()
    assert await state(engine, waiting) == "blocked"
    assert await engine.depend(waiting, remove=[failing]) == "queued"


async def test_new_tags_of_a_running_job_do_not_change_its_limits(engine: Engine, enqueue: Any) -> None:
    await engine.constrain("heavy", {"tags": "heavy"}, concurrency=1)
    plain = await enqueue()
    running = await take(engine)
    assert await engine.change([({"id": plain, "tags": ["heavy"]}, b"")]) == ["running"]
    await enqueue(tags=["heavy"])
    assert (await take(engine)).id != running.id  # it starts: the first counts as what it started as
