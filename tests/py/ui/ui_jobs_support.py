"""For tests of the pages about jobs: a namespace of its own for each test, and jobs in any state."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from http_live import live_server
from ui_support import Server, Tab, Ui

LIGHT, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


class Site(Server):
    """A server and its API. A worker named `hand` does what the test says."""

    def add(self, name: str, **spec: Any) -> str:
        return str(self.call("POST", "/job", {"name": name, **spec})["job_id"])

    def add_all(self, specs: list[dict[str, Any]]) -> list[str]:
        ids: list[str] = []
        for at in range(0, len(specs), 1000):
            ids += self.call("POST", "/jobs", {"jobs": specs[at : at + 1000]})["job_ids"]
        return ids

    def job(self, job_id: str) -> Any:
        return self.get(f"/job/{job_id}")

    def start(self, queue: str, count: int = 1) -> list[dict[str, Any]]:
        return self.pick(queue, "hand", count)

    def succeed(self, job: dict[str, Any], result: Any = None) -> None:
        self.finish(job, "hand", result=result)

    def fail(self, queue: str, count: int = 1, message: str = "it broke", **more: Any) -> list[str]:
        """Let jobs of a queue run and fail for good; their ids."""
        failure = {"type": "failure", "message": message, "should_retry": False, **more}
        outcomes = [{"id": job["id"], "token": job["token"], **failure} for job in self.start(queue, count)]
        self.call("POST", "/done", {"outcomes": outcomes}, **{"worker-id": "hand"})
        return [outcome["id"] for outcome in outcomes]


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """One address for all servers of a file: so a tab can stay."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def site(redis_url: str, listener: socket.socket) -> Iterator[Site]:
    with live_server(redis_url, "{t" + secrets.token_hex(6) + "}", listener.dup()) as live:
        site = Site(live.url)
        yield site
        site.session.close()


@contextmanager
def open_page(browser: Browser, site: Site, **options: Any) -> Iterator[Page]:
    """A tab in which nothing may go wrong, but for what the API refuses."""
    context = browser.new_context(base_url=site.url, **{"viewport": LIGHT, "timezone_id": "UTC", **options})
    ui = Ui(context, site)
    ui.refusals = 100
    yield ui.page
    ui.close()


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Tab]:
    tab = Tab(browser, viewport=LIGHT, timezone_id="UTC")
    yield tab
    tab.close()


@pytest.fixture
def page(tab: Tab, site: Site) -> Iterator[Page]:
    with tab.used(site) as ui:
        ui.refusals = 100
        yield ui.page


def rows(page: Page) -> Locator:
    return page.locator("tbody tr[data-key]")


def dialog(page: Page) -> Locator:
    return page.locator("dialog[open]")


def is_too_wide(page: Page) -> bool:
    """Whether one would have to scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
