"""The web UI in a real Chromium, before a real master."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect, sync_playwright

# The first needs half the time of the others for the same pages.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LIGHT, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=360, height=740)
# What a page would stumble over that takes text for markup, a path, or a direction of writing.
HOSTILE = '<img src=x onerror="window.hacked=1">\'&/../%2F?#\u202e ünï 𝒳'

# To find what works only because answers come at once: by how many ms later they come, how many times
# slower pages are.
LATENCY_MS = float(os.environ.get("JQ_UI_LATENCY_MS", "0"))
SLOWER = float(os.environ.get("JQ_UI_SLOWER", "1"))

expect.set_options(timeout=60_000 * max(1, SLOWER))

# A page of the UI by way of its router, in a tab that has it loaded: a sixth of the work. What a load would have
# taken away goes as well, also the page itself where it is the same.
NOWHERE = "/ui/-"
OPEN = """([nowhere, target]) => {
    const turn = () => dispatchEvent(new PopStateEvent('popstate'));
    history.pushState(null, '', nowhere);
    turn();
    for (const id of ['main', 'toasts']) document.getElementById(id).replaceChildren();
    document.activeElement?.blur();
    scrollTo(0, 0);
    history.replaceState(null, '', target);
    turn();
}"""


def load(page: Page, target: str) -> None:
    """Load a page as by its address, until the UI has begun."""
    page.goto(target)
    page.locator("#nav a, form.login").first.wait_for(state="attached")


def go(page: Page, target: str) -> None:
    """Open a page of the UI; it is loaded only where the tab has none yet."""
    if urlsplit(page.url).path.startswith("/ui"):
        page.evaluate(OPEN, [NOWHERE, target])
    else:
        load(page, target)


@dataclass
class Server:
    """A master, and its API in JSON."""

    url: str
    session: requests.Session = field(default_factory=requests.Session)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.session.request(
            method, self.url + path, json=body, headers={"accept": "application/json", **headers}, timeout=30
        )
        assert answer.status_code < 300, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def add_all(self, specs: list[dict[str, Any]]) -> list[str]:
        ids: list[str] = []
        for at in range(0, len(specs), 1000):
            ids += self.call("POST", "/jobs", {"jobs": specs[at : at + 1000]})["job_ids"]
        return ids

    def enqueue(self, name: str, count: int = 1, **spec: Any) -> list[str]:
        return self.add_all([{"name": name, **spec}] * count)

    def add(self, name: str, **spec: Any) -> str:
        return self.enqueue(name, **spec)[0]

    def job(self, job_id: str) -> Any:
        return self.get(f"/job/{job_id}")

    # A worker named `hand` does what the test says.

    def pick(self, queue: str, worker: str = "hand", count: int = 1) -> list[dict[str, Any]]:
        body = {"queues": queue, "count": count}
        jobs: list[dict[str, Any]] = self.call("POST", "/pick", body, **{"worker-id": worker})["jobs"]
        return jobs

    def finish(self, *jobs: dict[str, Any], **outcome: Any) -> None:
        outcomes = [{"id": job["id"], "token": job["token"], "type": "success", **outcome} for job in jobs]
        self.call("POST", "/done", {"outcomes": outcomes}, **{"worker-id": "hand"})

    def fail(self, queue: str, count: int = 1, message: str = "it broke", **more: Any) -> list[str]:
        """Let jobs of a queue run and fail for good; their ids."""
        jobs = self.pick(queue, count=count)
        self.finish(*jobs, **{"type": "failure", "message": message, "should_retry": False, **more})
        return [job["id"] for job in jobs]

    def queue(self, name: str) -> dict[str, Any]:
        [found] = self.get(f"/queues?names={quote(name, safe='')}")["queues"]
        return found


class Ui:
    """One tab. `close` fails the test when anything was wrong in it that nobody expected."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.server = server
        self.page: Page = context.new_page()
        if LATENCY_MS or SLOWER > 1:
            devtools = context.new_cdp_session(self.page)
            unlimited = {"downloadThroughput": -1, "uploadThroughput": -1}
            devtools.send("Network.emulateNetworkConditions", {"offline": False, "latency": LATENCY_MS, **unlimited})
            devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        self.problems: list[str] = []
        self.requested: list[str] = []
        # Answers that a test provokes: the browser calls each an error.
        self.refusals = 0
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            if self.refusals and "Failed to load resource" in message.text:
                self.refusals -= 1
            else:
                self.problems.append(message.text)

    def go(self, path: str, title: str | None = None) -> Ui:
        """Open a page, and wait for its title where that is told."""
        go(self.page, f"{self.server.url}/ui{path}")
        if title is not None:
            expect(self.page.locator("h1")).to_contain_text(title)
        return self

    def load(self, path: str, title: str = "") -> Ui:
        """The same with all of it loaded anew, as by its address."""
        load(self.page, f"{self.server.url}/ui{path}")
        expect(self.page.locator("h1")).to_contain_text(title)
        return self

    def button(self, name: str) -> Locator:
        """Also of one that asks something first, whose name ends in dots."""
        one, asking = (self.page.get_by_role("button", name=text, exact=True) for text in (name, f"{name}…"))
        return one.or_(asking)

    def row(self, text: str) -> Locator:
        return self.page.locator("tbody tr").filter(has_text=text)

    @property
    def dialog(self) -> Locator:
        return self.page.locator("dialog[open]")

    def told(self, text: str) -> None:
        """A message came that has this text."""
        expect(self.page.locator("#toasts")).to_contain_text(text)

    def fits(self) -> None:
        """Nothing is wider than the window."""
        width, inner = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner, f"{self.page.url} is {width} wide in {inner}"

    def columns_fit(self) -> None:
        """No table has columns out of sight."""
        scrolling = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
        wide = self.page.evaluate(f"{scrolling}.map((one) => [one.ariaLabel, one.scrollWidth, one.clientWidth])")
        assert not wide, f"{self.page.url}: {wide}"

    def check(self) -> None:
        """Nothing was wrong in it so far."""
        hacked = self.page.evaluate("window.hacked")
        own = urlsplit(self.server.url).netloc
        assert not self.problems, self.problems
        assert hacked is None
        assert {urlsplit(url).netloc for url in self.requested} <= {own}

    def close(self) -> None:
        try:
            self.check()
        finally:
            self.page.context.close()


class Tab:
    """A tab for the tests of a file, one after the other: what one leaves behind the next does not find. After one
    that failed there is another."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.browser = browser
        self.options = options
        self.ui: Ui | None = None

    @contextmanager
    def used(self, server: Server) -> Iterator[Ui]:
        ui = self.ui
        if ui is None:
            ui = Ui(self.browser.new_context(**self.options), server)
            load(ui.page, f"{server.url}{NOWHERE}")
        self.ui = None
        ui.server, ui.refusals = server, 0
        try:
            yield ui
            ui.check()
            go(ui.page, f"{server.url}{NOWHERE}")
            ui.page.evaluate("localStorage.clear()")
            ui.page.unroute_all()
            ui.page.set_viewport_size(self.options["viewport"])
            self.ui = ui
        finally:
            if self.ui is None:
                ui.page.context.close()

    def close(self) -> None:
        if self.ui is not None:
            self.ui.page.context.close()


@contextmanager
def open_page(browser: Browser, site: Server, **options: Any) -> Iterator[Page]:
    """A tab in which nothing may go wrong, but for what the API refuses."""
    context = browser.new_context(base_url=site.url, **{"viewport": LIGHT, "timezone_id": "UTC", **options})
    ui = Ui(context, site)
    ui.refusals = 100
    yield ui.page
    ui.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium found: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, headless=True)
        yield browser
        browser.close()


def rows(page: Page) -> Locator:
    return page.locator("tbody tr[data-key]")


def dialog(page: Page) -> Locator:
    return page.locator("dialog[open]")


def is_too_wide(page: Page) -> bool:
    """Whether one would have to scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
