"""How soon each page of the web UI paints, with a warm cache, and what it weighs with a cold one.

bench/ui_paint.py               medians of five visits
bench/ui_paint.py --visits 9

A line for each page: bytes on the wire of a first visit (files of the UI, without answers of the API), ms to the first
paint with something in it (PerformanceObserver) of later ones, and ms until its heading stands. The load average of the
machine is told with them: with others at work these are no measure. Needs chromium, and the Python package playwright.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

import requests
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

from processes import MasterProcess
from servers import RedisServer

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
JOBS = 1000
PAGES = (
    "/", "/changes", "/queues", "/queue/mail", "/jobs", "/job/{job}", "/failures", "/constraints", "/constraint/each",
    "/schedules", "/workers", "/worker/w-1", "/enqueue", "/trail", "/keys",
)  # fmt: skip
TARGET_MS, TARGET_KB = 300, 150
# The paint, and when the heading came.
PAINTED = """new Promise((resolve) => new PerformanceObserver((list) => {
  const [entry] = list.getEntriesByName('first-contentful-paint');
  if (entry) resolve(entry.startTime);
}).observe({ type: 'paint', buffered: true }))"""


def fill(url: str) -> str:
    """Some of everything → a job."""

    def call(method: str, path: str, body: object, **headers: str) -> dict[str, list[dict[str, str]]]:
        answer = requests.request(method, url + path, json=body, headers={"accept": "application/json", **headers})
        answer.raise_for_status()
        found: dict[str, list[dict[str, str]]] = answer.json() if answer.content else {}
        return found

    match = {"match": {"queue": "mail"}, "by": "argument.customer", "concurrency": 5}
    call("PUT", "/constraint/each", match)
    call("PUT", "/schedule/nightly", {"job": {"name": "report"}, "cron": "0 3 * * *"})
    call("POST", "/mark", {"text": "v1"})
    jobs = [{"name": "mail", "argument": {"customer": number % 9}} for number in range(JOBS)]
    call("POST", "/jobs", {"jobs": jobs})
    picked = call("POST", "/pick", {"queues": "mail", "count": 20}, **{"worker-id": "w-1"})["jobs"]
    for job in picked[1:]:
        outcome = {"id": job["id"], "token": job["token"], "type": "success"}
        call("POST", "/done", outcome, **{"worker-id": "w-1"})
    return picked[0]["id"]


def weigh(browser: Browser, target: str) -> float:
    """kB of a first visit."""
    context = browser.new_context()
    page = context.new_page()
    loaded = []
    page.on("requestfinished", lambda request: loaded.append(request) if "/ui/" in request.url else None)
    page.goto(target)
    page.wait_for_selector("h1")
    page.wait_for_timeout(500)
    size = sum(request.sizes()["responseBodySize"] for request in loaded)
    context.close()
    return size / 1000


def visit(page: Page, target: str) -> tuple[float, float]:
    """ms to the first paint, and to the heading."""
    page.goto("about:blank")
    page.goto(target, wait_until="commit")
    page.wait_for_selector("h1")
    heading: float = page.evaluate("performance.now()")
    return page.evaluate(PAINTED), heading


def run(visits: int) -> None:
    with RedisServer() as redis, MasterProcess("--redis", redis.url) as master, sync_playwright() as playwright:
        job = fill(master.url)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_context().new_page()
        print(f"{'page':<20} {'cold kB':>8} {'paint ms':>9} {'heading ms':>11}   load")
        for target in PAGES:
            url = f"{master.url}/ui{target.format(job=job)}"
            cold = weigh(browser, url)
            visit(page, url)  # fills the cache
            paints, headings = zip(*(visit(page, url) for _ in range(visits)), strict=True)
            paint = statistics.median(paints)
            over = " over" if paint > TARGET_MS or cold > TARGET_KB else ""
            load = f"{os.getloadavg()[0]:.1f}{over}"
            print(f"{target:<20} {cold:>8.1f} {paint:>9.0f} {statistics.median(headings):>11.0f}   {load}", flush=True)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=5)
    run(parser.parse_args().visits)


if __name__ == "__main__":
    main()
