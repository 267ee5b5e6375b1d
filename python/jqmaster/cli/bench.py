"""`bench`: what this Redis and this network can do, with jobs that do nothing, in a namespace of its own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show
from jqmaster.cli.options import REACH, Client, Options, Replies, command
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import client_of, redis_place, tell

if TYPE_CHECKING:
    from jqmaster.engine.engine import Engine


_BATCH = 100
_PINGS, _TRIPS = 500, 300


@command(f"""bench
measure your Redis with jobs that do nothing
Needs Redis itself. Works in a namespace of its own, which it removes; other
namespaces only notice the load. Calls go out one after the other on so many
connections (--concurrency), each from this one process: it measures the way
there as much as Redis.

--jobs N=5000       for each step
--concurrency N=16
{REACH}""")
def _bench(options: Options) -> int:
    where = redis_place(options, "bench")._replace(namespace="{jq-bench-" + secrets.token_hex(4) + "}")
    with client_of(where, creates=True) as client:
        return tell(_measured(client, options), as_json=options.json)


def _measured(client: Client, options: Options) -> Replies:
    rows: list[dict[str, Any]] = []
    try:
        with Progress("measuring", 3 * options.jobs + _PINGS + _TRIPS, "calls") as bar:
            client.ask_redis(lambda engine: _measure(engine, options, rows, bar))
    finally:
        client.ask_redis(_remove)
    table = show.Table("STEP~1 | JOBS/S> | P50> | P99> | MAX>")
    for row in rows:
        rate = show.count(row["per_second"]) if row.get("per_second") else ""
        table.add(row["step"], rate, *(show.milliseconds(row[name]) for name in ("p50_ms", "p99_ms", "max_ms")))
    table.more = f"in {client.namespace}, which is removed; times are of one call"
    yield rows, table


async def _measure(engine: Engine, options: Options, rows: list[dict[str, Any]], bar: Progress) -> None:
    from jqmaster.engine import scripts

    await scripts.load(engine.redis, engine.namespace, form=engine.form)
    spec = {"name": "bench"}
    rows.append(await _timed("PING, one after the other", engine.redis.ping, _PINGS, 1, bar))

    async def one() -> None:
        await engine.enqueue([(spec, b"\xc0")])

    rows.append(await _timed("enqueue", one, options.jobs, options.concurrency, bar, jobs=1))

    async def many() -> None:
        await engine.enqueue([(spec, b"\xc0")] * _BATCH)

    calls = max(1, options.jobs // _BATCH)
    rows.append(await _timed(f"enqueue, {_BATCH} in a call", many, calls, 4, bar, jobs=_BATCH))
    await _work(engine, options, rows, bar)
    rows.append(await _timed("enqueue, pick and finish one job", lambda: _trip(engine, spec), _TRIPS, 1, bar, jobs=1))


async def _work(engine: Engine, options: Options, rows: list[dict[str, Any]], bar: Progress) -> None:
    """Workers of one job at a time, which finish and fetch the next in one call."""
    held = asyncio.Queue[Any]()
    picked = await engine.pick("bench", "bench", options.concurrency)
    for job in picked.jobs:
        held.put_nowait(job)

    async def step() -> None:
        job = await held.get()
        outcome = {"id": job.id, "token": job.token, "type": "success"}
        done = await engine.finish("bench", [(outcome, b"\xc0")], pick={"queues": "bench"})
        for following in done.picked.jobs if done.picked else ():
            held.put_nowait(following)

    count = min(options.jobs, 2 * options.jobs - options.concurrency) or 1
    rows.append(await _timed("work: finish and fetch the next", step, count, options.concurrency, bar, jobs=1))


async def _trip(engine: Any, spec: dict[str, Any]) -> None:
    await engine.enqueue([({**spec, "queue": "trip"}, b"\xc0")])
    [job] = (await engine.pick("bench", "trip")).jobs
    await engine.finish("bench", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])


async def _timed(
    step: str, call: Callable[[], Awaitable[Any]], count: int, at_once: int, bar: Progress, *, jobs: int = 0
) -> dict[str, Any]:
    times: list[float] = []
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            begun = time.perf_counter()
            await call()
            times.append((time.perf_counter() - begun) * 1000)
            bar.add(1)

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(at_once)))
    took_s = time.perf_counter() - begun
    times.sort()
    middle, most = times[len(times) // 2], times[int(len(times) * 0.99)]
    row = {"step": step, "calls": count, "p50_ms": middle, "p99_ms": most, "max_ms": times[-1]}
    return row | ({"per_second": count * jobs / took_s} if jobs else {})


async def _remove(engine: Engine) -> None:
    """All keys of the scratch namespace, some at a time."""
    with contextlib.suppress(Exception):
        keys = [key async for key in engine.redis.scan_iter(match=engine.namespace + "*", count=1000)]
        for start in range(0, len(keys), 500):
            await engine.redis.unlink(*keys[start : start + 500])
