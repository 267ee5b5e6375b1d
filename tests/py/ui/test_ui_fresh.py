"""Every page says how old its figures are, and that nobody answers; navigating then says so as well."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from processes import MasterProcess
from servers import RedisServer
from ui_support import Server, Ui, browser  # noqa: F401

PAGES = ("/", "/queue/a", "/jobs", "/job/{id}", "/workers")


@pytest.fixture
def site(fresh_server: RedisServer) -> Iterator[tuple[RedisServer, MasterProcess]]:
    with MasterProcess("--redis", fresh_server.url) as master:
        yield fresh_server, master


def pages(browser: Browser, server: Server, targets: tuple[str, ...]) -> list[Ui]:
    [job] = server.enqueue("a", delay=1000)
    found = []
    for target in targets:
        ui = Ui(browser.new_context(), server).go(target.format(id=job))
        expect(ui.page.locator("#live")).to_have_text("Live")
        ui.refusals = 1000
        found.append(ui)
    return found


def test_nobody_answers(browser: Browser, site: tuple[RedisServer, MasterProcess]) -> None:
    redis, master = site
    server = Server(master.url)
    open_pages = pages(browser, server, PAGES)
    assert redis.process is not None
    redis.process.send_signal(signal.SIGSTOP)
    try:
        for ui in open_pages:
            expect(ui.page.locator("#banner")).to_contain_text("Redis", timeout=30_000)
            expect(ui.page.locator("#banner")).to_contain_text("Figures are of")
            expect(ui.page.locator("#live")).to_contain_text("s old")
            assert ui.page.evaluate("getComputedStyle(document.querySelector('.view')).opacity") < "1"
    finally:
        redis.process.send_signal(signal.SIGCONT)
    for ui in open_pages:
        expect(ui.page.locator("#live")).to_have_text("Live", timeout=30_000)
        expect(ui.page.locator("#banner")).to_be_hidden()
    master.kill()
    for ui in open_pages:
        expect(ui.page.locator("#banner")).to_contain_text("The master cannot be reached", timeout=30_000)
    moved = open_pages[1]
    moved.page.get_by_role("link", name="Schedules").click()
    expect(moved.page.locator("main")).to_contain_text("The master cannot be reached")
