"""What statistics say over time: the largest series beside each other, what ran, and what a deploy changed."""

from __future__ import annotations

from typing import Any

import pytest

from jqmaster.engine.replies import Picked
from jqmaster.server.trends import Trends
from settable import SettableEngine

NIL = b"\xc0"
MINUTE_MS = 60_000


@pytest.fixture
async def start_ms(settable: SettableEngine) -> int:
    start_ms = settable.now_ms // 86_400_000 * 86_400_000
    await settable.set_clock(start_ms)
    return start_ms


async def enqueue(engine: SettableEngine, queue: str, name: str | None = None, count: int = 1) -> None:
    await engine.enqueue([({"name": name or queue, "queue": queue, "max_retry": 0, "timeout": 9000}, NIL)] * count)


async def take(engine: SettableEngine, queue: str, count: int = 1) -> list[Any]:
    picked: Picked = await engine.pick("w", queue, count)
    assert len(picked.jobs) == count
    return list(picked.jobs)


async def end(engine: SettableEngine, jobs: list[Any], *, fail: bool = False) -> None:
    how = {"type": "failure", "reason": "other", "message": "no"} if fail else {"type": "success"}
    await engine.finish("w", [({"id": job.id, "token": job.token, **how}, NIL) for job in jobs])


async def run(
    engine: SettableEngine, queue: str, name: str | None = None, count: int = 1, *, fail: bool = False
) -> None:
    await enqueue(engine, queue, name, count)
    await end(engine, await take(engine, queue, count), fail=fail)


async def test_series_of_outcomes_queues_and_names(settable: SettableEngine, start_ms: int) -> None:
    await run(settable, "mail", count=5)
    await settable.advance(60)
    await run(settable, "mail", "mail.news", count=2)
    await run(settable, "report", fail=True)
    await run(settable, "small")
    now_ms = settable.now_ms + 1000

    async def trends(split: str, top: int = 8, to_ms: int | None = None) -> Any:
        return await settable.trends(split, from_ms=start_ms, to_ms=to_ms, top=top, now_ms=now_ms)  # type: ignore[arg-type]

    told = await trends("outcome")
    assert (told["by"], told["begins"]) == ("minute", [start_ms, start_ms + MINUTE_MS])
    assert {one["name"]: one["values"] for one in told["series"] if one["count"]} == {"done": [5, 3], "error": [0, 1]}
    told = await trends("queue", top=1)
    assert told["series"] == [{"name": "mail", "count": 7, "values": [5, 2]}]
    assert (told["rest"], told["pairs"], told["more"]) == ([0, 2], 4, False)
    told = await trends("name", to_ms=start_ms + MINUTE_MS)
    assert (told["begins"], told["series"]) == ([start_ms], [{"name": "mail", "count": 5, "values": [5]}])
    far = await settable.trends("queue", from_ms=start_ms, now_ms=now_ms + 4 * 3_600_000)
    assert far["by"] == "hour" and far["series"][0]["values"] == [7, 0, 0, 0, 0]


async def test_what_ran_and_what_grew(settable: SettableEngine, start_ms: int) -> None:
    """However long ago they began: as somebody would have counted at each minute."""
    trends, counted = Trends(settable), []
    held: list[Any] = []
    for minute in range(6):
        counted.append((len(held), (await settable.queues(["a"])).documents))
        await enqueue(settable, "a", count=3)
        await settable.advance(20)
        held += await take(settable, "a", 2)
        await settable.advance(20)
        await end(settable, [held.pop(0)], fail=minute % 2 == 1)
        await settable.advance(20)
    # The master's own clock says which ranges are new: it is asked for what the settable clock has.
    told = await settable.trends(from_ms=start_ms, now_ms=settable.now_ms)
    started, is_whole = await trends._running()
    running = [
        ran_on + sum(one < begin for one in started)
        for ran_on, begin in zip(told["ran_on"], told["begins"], strict=True)
    ]
    assert is_whole and running == [number for number, _ in counted] == [0, 1, 2, 3, 4, 5]
    assert told["grown"] == [12, 10, 8, 6, 4, 2]  # 3 came and 1 ended in each


async def test_what_a_deploy_changed(settable: SettableEngine, start_ms: int) -> None:
    for _ in range(10):
        await run(settable, "mail", count=6)
        await run(settable, "report", count=2)
        await settable.advance(60)
    mark = await settable.mark("v2", time_ms=settable.now_ms + 1)
    nothing = await settable.changes(mark["time_ms"], span_s=600, now_ms=settable.now_ms + 2)
    assert nothing["rows"] == [] and nothing["after"]["from_ms"] == nothing["after"]["to_ms"]
    await settable.advance(60)
    for _ in range(5):
        await run(settable, "mail", count=6, fail=True)
        await run(settable, "report", count=2)
        await settable.advance(60)
    told = await settable.changes(mark["time_ms"], span_s=600, now_ms=settable.now_ms)
    assert told["by"] == "minute"
    assert told["before"] == {"from_ms": start_ms, "to_ms": start_ms + 10 * MINUTE_MS}
    assert told["after"] == {"from_ms": start_ms + 11 * MINUTE_MS, "to_ms": start_ms + 16 * MINUTE_MS}
    mail, report = told["rows"]
    assert (mail["queue"], mail["name"], mail["of"], report["queue"]) == ("mail", "mail", "failing", "report")
    assert (mail["before"]["failing"], mail["after"]["failing"]) == (0, 6)
    assert (mail["before"]["ended"], mail["after"]["ended"], mail["after"]["failing_share"]) == (6, 6, 1)
    assert mail["change"] == 7 and report["change"] == 1


async def test_percentiles_of_runs_are_compared(settable: SettableEngine, start_ms: int) -> None:
    day_ms = 86_400_000
    for seconds in (1, 9):
        for _ in range(8):
            await enqueue(settable, "mail")
            jobs = await take(settable, "mail")
            await settable.advance(seconds)
            await end(settable, jobs)
        await settable.set_clock(start_ms + 2 * day_ms)
    # Hours of then are not kept: the day of the moment is left out.
    told = await settable.changes(start_ms + day_ms, span_s=3600, now_ms=start_ms + 12 * day_ms)
    assert told["by"] == "day" and told["after"] == {"from_ms": start_ms + 2 * day_ms, "to_ms": start_ms + 3 * day_ms}
    [row] = told["rows"]
    assert row["of"] == "run" and row["before"]["run_p95"] == 1000 and row["after"]["run_p95"] == 9000
