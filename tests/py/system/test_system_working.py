"""What workers ask of a system, by jobs of several partitions: answers in order, each job where it is."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from jqmaster.engine.replies import Job, Note
from jqmaster.errors import Invalid, NotFound
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from systems import NIL, put, system  # noqa: F401 (fixture)


async def running(system: SystemEngine, each: int = 2, worker: str = "w") -> list[Job]:
    """Jobs that a worker has, of all partitions in turns."""
    found = []
    for one in await system.partitions():
        await put(one, each)
        found.append((await one.pick(worker, "a", each)).jobs)
    return [job for jobs in zip(*found, strict=True) for job in jobs]


async def test_outcomes_go_where_their_jobs_are(system: SystemEngine) -> None:
    jobs = await running(system)
    unknown = (jobs[0].id[:13] + "f", jobs[0].token)
    outcomes: list[Any] = [
        ({"id": job.id, "token": job.token, "type": "success"}, msgpack.packb(number))
        for number, job in enumerate(jobs)
    ]
    outcomes[1] = (*outcomes[1], [({"name": "next"}, NIL), ({"name": "last"}, NIL)])
    outcomes.insert(2, ({"id": unknown[0], "token": unknown[1], "type": "success"}, NIL))
    done = await system.finish("w", outcomes)
    assert done.states == ["done", "done", "NOTFOUND", "done", "done", "done", "done"]
    assert [one.id[14:] for one in done.enqueued[1]] == ["01", "01"] and done.picked is None
    with pytest.raises(Invalid):
        await system.finish("w")


async def test_jobs_are_given_back_and_refused_in_order(system: SystemEngine) -> None:
    jobs = await running(system)
    held = [job.held for job in jobs]
    lost = (held[4][0], held[4][1][:-1] + ("0" if held[4][1][-1] != "0" else "1"))
    assert await system.release("w", [*held[:4], lost], message="later") == ["queued"] * 4 + ["LOST"]
    assert await system.release("w", held[4:], delay=60) == ["scheduled"] * 2
    assert [one["queued"] for one in (await system.queues()).documents] == [4]
    with pytest.raises(Invalid):
        await system.release("w", [])


async def test_leases_are_renewed_with_notes(system: SystemEngine) -> None:
    jobs = await running(system)
    held = [job.held for job in jobs]
    notes = {held[n]: Note(progress=n / 10, argument=msgpack.packb(f"argument {n}")) for n in (1, 4, 5)}
    answers = await system.heartbeat("w", held, notes=notes)
    assert all(isinstance(one, int) and one > 20_000 for one in answers)
    documents = await system.get(*(job.id for job in jobs))
    assert [one and one["progress"] for one in documents if one and "progress" in one] == [0.1, 0.4, 0.5]
    assert [one and one["id"] for one in documents if one and "progress" in one] == [held[n][0] for n in (1, 4, 5)]
    beat = await system.beat("w", held)
    assert beat.request == "" and len(beat.answers) == 6
    await system.cancel([jobs[3].id], force=True)
    assert (await system.beat("w", held)).answers[3] == "CANCELLED"
    assert await system.heartbeat("w") == []


async def test_announced_workers_are_at_the_home_of_their_name(system: SystemEngine) -> None:
    engines = await system.partitions()
    assert system.record is not None
    for name in ("host-1", "host-2", "wolf"):
        assert await system.register(name, "a", announce=True) == name
        home = engines[system.record.home(name.encode())]
        assert name in [one["id"] for one in (await home.workers(others=True)).documents]
    assert [one["id"] for one in (await system.workers(others=True)).documents] == ["host-1", "host-2", "wolf"]
    await system.unregister("host-1")
    assert [one["id"] for one in (await system.workers(others=True)).documents] == ["host-2", "wolf"]
    with pytest.raises(Invalid, match="register without announce or url"):
        await system.register("host-3", "a")


async def test_registered_ones_are_asked_where_their_id_says(system: SystemEngine) -> None:
    for one in await system.partitions():
        worker = await one.register("pushed", "a", url="http://host/", max_jobs=3)
        await system.worker(worker, "quiet")
        assert (await system.beat(worker)).request == "quiet"
        [document] = (await system.workers([worker])).documents
        assert document["state"] == "quiet"
        [job] = await put(one)
        [assigned] = (await one.assign("m")).assignments or [None]
        if assigned:
            assert await system.refuse(worker, [assigned.job.held], "busy") == ["queued"]
        await system.cancel([job])
        await system.unregister(worker)
    with pytest.raises(NotFound):
        await system.worker("w" + "0" * 14, "quiet")


async def test_running_jobs_of_a_queue_or_a_worker_are_taken_wherever_they_run(system: SystemEngine) -> None:
    jobs = await running(system)
    assert await system.kick_queue("a", count=3) == (3, True)
    assert await system.kick_queue("a", count=100) == (3, False)
    assert await system.watch(*(job.id for job in jobs)) == ["queued"] * 6
    with pytest.raises(NotFound):
        await system.kick_queue("none")
    assert await system.kick([jobs[0].id]) == ["CONFLICT"]


async def test_jobs_are_picked_wherever_they_are(system: SystemEngine) -> None:
    partitions = await system.partitions()
    for one in partitions:
        await put(one, 2)
    found = [job for _ in range(2 * len(partitions)) for job in (await system.pick("w", "a")).jobs]
    assert sorted(partition_of(job.id) for job in found) == sorted([*range(len(partitions))] * 2)
    assert (await system.pick("w", "a")).jobs == []
    with pytest.raises(Invalid, match="pick with wait"):
        await system.call("pick", msgpack.packb({"worker": "w", "queues": "a", "wait": {"on": "x", "ms": 5}}))
    with pytest.raises(Invalid, match="queues"):
        await system.pick("w", [])
    await system.enqueue([({"name": "a", "delay": 60}, NIL)])
    assert 0 < (await system.pick("w", "a")).next_ms <= 60_000


async def test_a_pick_says_when_there_may_be_more_at_once(system: SystemEngine) -> None:
    """As where a job waits that does not come before the place that is asked for."""
    one, *_ = await system.partitions()
    await put(one)
    assert await system.pick("w", "a", before="0" * 22) == (0, [])
    await system.pick("w", "a")
    assert (await system.pick("w", "a")).next_ms > 0


async def test_a_pick_that_is_repeated_brings_the_same(system: SystemEngine) -> None:
    for one in await system.partitions():
        await put(one, 1)
    first = await system.pick("w", "a", request="r")
    assert first.jobs and await system.pick("w", "a", request="r") == first


async def test_the_next_job_comes_with_a_report(system: SystemEngine) -> None:
    jobs = await running(system)
    idle = (await system.finish("w", pick={"queues": "a"})).picked
    assert idle is not None and idle.jobs == []
    for one in await system.partitions():
        await put(one, 3)
    done: list[str] = []
    while jobs:
        outcomes = [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in jobs]
        answered = await system.finish("w", outcomes, pick={"queues": "a", "count": 2})
        assert answered.states == ["done"] * len(jobs)
        done += [job.id for job in jobs]
        assert answered.picked is not None
        jobs = answered.picked.jobs
    assert len(done) == len(set(done)) == 5 * len(await system.partitions())


async def test_what_is_urgent_is_soon_found_wherever_it_is(system: SystemEngine) -> None:
    """A report looks at one other partition, chosen by chance."""
    partitions = await system.partitions()
    await put(partitions[0], 200)
    [urgent] = await partitions[1].enqueue([({"name": "a", "priority": -5}, NIL)])
    [job] = (await partitions[0].pick("w", "a")).jobs
    for _ in range(150):
        outcome = ({"id": job.id, "token": job.token, "type": "success"}, NIL)
        picked = (await system.finish("w", [outcome], pick={"queues": "a"})).picked
        assert picked is not None
        [job] = picked.jobs
        if job.id == urgent.id:
            return
    raise AssertionError("it was never found")
