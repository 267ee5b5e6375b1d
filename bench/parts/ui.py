"""What the pages of the UI weigh with a cold cache, and how soon they paint with a warm one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import msgpack
from kit.engine import JQ
from kit.programs import jq_server
from kit.server import Server
from kit.tables import Figures, Options, Table
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PAGES = ("/", "/queues", "/queue/mail", "/jobs", "/failures", "/constraints", "/schedules", "/workers", "/enqueue")
JOBS = 10_000
# When the first thing with something in it was painted.
PAINTED = """new Promise((resolve) => new PerformanceObserver((list) => {
  const [entry] = list.getEntriesByName('first-contentful-paint');
  if (entry) resolve(entry.startTime);
}).observe({ type: 'paint', buffered: true }))"""
NOTE = (
    "kB on the wire of a first visit: the UI's own files, without answers of the API. ms to the first paint of a later "
    f"one, and until its heading stands. {JOBS:,} jobs wait. At most 120 kB with the answers, and 300 ms when idle."
)


def weight(browser: Browser, url: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    loaded = []
    page.on("requestfinished", lambda request: loaded.append(request) if "/ui/" in request.url else None)
    page.goto(url)
    page.wait_for_selector("h1")
    page.wait_for_timeout(500)
    size: int = sum(request.sizes()["responseBodySize"] for request in loaded)
    context.close()
    return size / 1000


def visit(browser: Browser, page: Page, url: str) -> Figures:
    page.goto("about:blank")
    page.goto(url, wait_until="commit")
    page.wait_for_selector("h1")
    heading_ms: float = page.evaluate("performance.now()")
    return {"kB": weight(browser, url), "paint, ms": page.evaluate(PAINTED), "heading, ms": heading_ms}


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    redis = stack.enter_context(Server())
    wire, jq = redis.wire(), JQ(lambda number: {"queue": ("mail", "report")[number % 2]})
    jq.argument = lambda number: msgpack.packb({"customer": number % 9})
    jq.prepare(wire)
    wire.pipelined(jq.enqueue(JOBS, 1000))
    _, port = stack.enter_context(jq_server(redis.path))
    playwright = stack.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
    stack.callback(browser.close)
    page = browser.new_context().new_page()
    urls = {path: f"http://127.0.0.1:{port}/ui{path}" for path in PAGES}
    for url in urls.values():
        visit(browser, page, url)  # fills the cache
    yield Table("The UI's pages", NOTE, {path: partial(visit, browser, page, url) for path, url in urls.items()})
