"""What the web UI weighs, how soon it shows something, and what an open overview costs Redis.

bench/ui.py                     all setups, about two minutes
bench/ui.py --jobs 1000000      another number of jobs in the large setup
bench/ui.py --seconds 60        how long the cost is counted

Needs chromium, and the Python package playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from typing import Any

import msgpack
from kit.server import Server, end_on_termination
from playwright.async_api import Browser, Page, async_playwright

from jqmaster.engine.engine import Engine
from jqmaster.server import server as jq

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
ROUNDS = 5


async def fill(engine: Engine, queues: int, jobs: int) -> None:
    """So many jobs, evenly in so many queues; some of them done."""
    spec = [msgpack.packb({"name": f"queue-{number:05d}"}) for number in range(queues)]
    argument = msgpack.packb({"to": "ada@example.com"})
    for start in range(0, jobs, 1000):
        args = [part for n in range(start, min(start + 1000, jobs)) for part in (spec[n % queues], argument)]
        await engine.raw("enqueue", *args)
    picked = await engine.pick("bench", "*", count=min(1000, jobs // 2))
    outcomes = [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0") for job in picked.jobs]
    await engine.finish("bench", outcomes)


async def weigh(page: Page, url: str) -> dict[str, Any]:
    """A first visit: bytes on the wire and unpacked, requests, ms until something useful shows."""
    sizes: list[tuple[str, int, int]] = []

    async def on_finished(request: Any) -> None:
        response = await request.response()
        if response is not None and "/ui/" in request.url:
            found = await request.sizes()
            sizes.append((request.url, found["responseBodySize"], len(await response.body())))

    tasks: list[asyncio.Task[None]] = []
    page.on("requestfinished", lambda request: tasks.append(asyncio.ensure_future(on_finished(request))))
    foreign: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(url) else foreign.append(request.url))
    await page.goto(f"{url}/ui/", wait_until="commit")
    await page.wait_for_selector(".tile-value")
    useful_ms = await page.evaluate(
        "() => new Promise(resolve => requestAnimationFrame(() => resolve(performance.now())))"
    )
    paint = await page.evaluate(
        "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0]"
    )
    await asyncio.gather(*tasks)
    return {
        "files": len(sizes), "foreign": len(foreign), "wire": sum(size[1] for size in sizes),
        "plain": sum(size[2] for size in sizes), "paint_ms": paint or 0.0, "useful_ms": useful_ms,
    }  # fmt: skip


async def cpu_us(engine: Engine) -> float:
    info = await engine.redis.info("cpu")
    return 1e6 * (float(info["used_cpu_user"]) + float(info["used_cpu_sys"]))


async def rate_us(engine: Engine, seconds: float) -> float:
    """Redis CPU, µs per second."""
    before, began = await cpu_us(engine), time.monotonic()
    await asyncio.sleep(seconds)
    return (await cpu_us(engine) - before) / (time.monotonic() - began)


async def measure(browser: Browser, queues: int, jobs: int, seconds: float) -> None:
    redis = Server()
    try:
        options = jq.ServeOptions(redis_url=f"unix://{redis.path}", port=0)
        async with jq.Server(options) as master:
            engine = Engine(master._redis, options.namespace)  # type: ignore[arg-type]
            await fill(engine, queues, jobs)
            await asyncio.sleep(1)
            idle = await rate_us(engine, seconds / 3)
            visits = []
            for _ in range(ROUNDS):
                context = await browser.new_context()
                visits.append(await weigh(await context.new_page(), master.url))
                await context.close()
            page = await browser.new_page()
            await page.goto(f"{master.url}/ui/")
            await page.wait_for_selector(".tile-value")
            await asyncio.sleep(3)
            one = await rate_us(engine, seconds)
            more = [await browser.new_page() for _ in range(4)]
            for other in more:
                await other.goto(f"{master.url}/ui/")
            five = await rate_us(engine, seconds)
            for opened in (page, *more):
                await opened.close()
    finally:
        redis.stop()
    visit = sorted(visits, key=lambda found: found["useful_ms"])[ROUNDS // 2]
    columns = (
        f"{queues:>7,} {jobs:>10,} {visit['files']:>6}",
        f"{visit['wire'] / 1000:>8.1f} {visit['plain'] / 1000:>8.1f} {visit['foreign']:>8}",
        f"{visit['paint_ms']:>9.0f} {visit['useful_ms']:>9.0f}",
        f"{idle:>9.0f} {one:>10.0f} {(one - idle) / 10_000:>8.2f} {five:>10.0f}",
    )
    print(" ".join(columns), flush=True)


async def run(options: argparse.Namespace) -> None:
    print(
        " queues       jobs  files  wire kB plain kB  foreign paint ms useful ms   idle µs  open µs/s"
        "   % core  five µs/s"
    )
    async with async_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for queues, jobs in ((100, 1000), (100, options.jobs), (10_000, options.jobs)):
            await measure(browser, queues, jobs, options.seconds)
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    end_on_termination()
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
