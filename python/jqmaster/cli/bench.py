"""`bench`: what this Redis and this network can do, with jobs that do nothing, in a namespace of its own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, positive, reach
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import Place, client_of, redis_place
from jqmaster.cli.status import EXIT_OK

if TYPE_CHECKING:
    from jqmaster.engine.engine import Engine


_MORE = """\
Needs Redis itself. Works in a namespace of its own, which it removes; other
namespaces only notice the load. Calls go out one after the other on so many
connections (--concurrency), each from this one process: it measures the way
there as much as Redis."""
_BATCH = 100
_PINGS, _TRIPS = 500, 300


def add(commands: Any) -> None:
    parser = reach(command(commands, "bench", _bench, "measure your Redis with jobs that do nothing", _MORE))
    parser.option("--jobs", type=positive, default=5000, metavar="N", help="for each step (default: %(default)s)")
    parser.option("--concurrency", type=positive, default=16, metavar="N", help="(default: %(default)s)")


def _bench(options: argparse.Namespace, _parser: Parser) -> int:
    where = redis_place(options, "bench")
    namespace = "{jq-bench-" + secrets.token_hex(4) + "}"
    rows: list[dict[str, Any]] = []
    with client_of(Place(where.url, namespace, where.form), creates=True) as client:
        total = 3 * options.jobs + _PINGS + _TRIPS
        try:
            with Progress("measuring", total, "calls") as bar:
                client.ask_redis(lambda engine: _measure(engine, options, rows, bar))
        finally:
            client.ask_redis(_remove)
    if options.json:
        values.print_lines(rows)
        return EXIT_OK
    table = show.Table(
        [show.Column("STEP", shrinks=1), show.Column("JOBS/S", right=True), show.Column("P50", right=True),
         show.Column("P99", right=True), show.Column("MAX", right=True)]
    )  # fmt: skip
    for row in rows:
        rate = show.count(row["per_second"]) if row.get("per_second") else ""
        table.add(row["step"], rate, *(show.milliseconds(row[name]) for name in ("p50_ms", "p99_ms", "max_ms")))
    table.print()
    print(show.paint(f"in {namespace}, which is removed; times are of one call", "dim"))
    return EXIT_OK


async def _measure(engine: Engine, options: argparse.Namespace, rows: list[dict[str, Any]], bar: Progress) -> None:
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


async def _work(engine: Engine, options: argparse.Namespace, rows: list[dict[str, Any]], bar: Progress) -> None:
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
    row = {
        "step": step, "calls": count, "p50_ms": times[len(times) // 2],
        "p99_ms": times[int(len(times) * 0.99)],
        "max_ms": times[-1],
    }  # fmt: skip
    return row | ({"per_second": count * jobs / took_s} if jobs else {})


async def _remove(engine: Engine) -> None:
    """All keys of the scratch namespace, some at a time."""
    pattern = engine.namespace + "*"
    with contextlib.suppress(Exception):
        keys: list[bytes] = []
        async for key in engine.redis.scan_iter(match=pattern, count=1000):
            keys.append(key)
            if len(keys) == 500:
                await engine.redis.unlink(*keys)
                keys = []
        if keys:
            await engine.redis.unlink(*keys)
