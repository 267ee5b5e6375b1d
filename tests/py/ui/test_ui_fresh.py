"""Every page says how old its figures are, and that nobody answers; navigating then says so as well."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from processes import MasterProcess
from servers import RedisServer
from ui_support import Server, Ui

pytestmark = pytest.mark.faults

LIVE = (
    "/", "/queues", "/queue/a", "/jobs", "/job/{id}", "/failures", "/limits", "/limit/c", "/schedules",
    "/workers",
)  # fmt: skip
STILL = ("/enqueue", "/trail", "/keys")


@pytest.fixture
def site(fresh_server: RedisServer) -> Iterator[tuple[RedisServer, MasterProcess]]:
    with MasterProcess("--redis", fresh_server.url, "--environment", "trial", "--environment-color", "red") as master:
        yield fresh_server, master


def pages(browser: Browser, server: Server) -> list[Ui]:
    [job] = server.enqueue("a", delay=1000)
    server.call("PUT", "/constraint/c", {"match": {"name": "a"}, "concurrency": 1})
    found = []
    for target in LIVE + STILL:
        # Of a window one tab is in sight, and the others rest.
        ui = Ui(browser.new_context(), server).go(target.format(id=job))
        expect(ui.page.locator("h1")).to_be_visible()
        if target in LIVE:
            expect(ui.page.locator("#live")).to_have_text("Live")
        ui.refusals = 1000
        found.append(ui)
    return found


def says(open_pages: list[Ui], text: str) -> None:
    """All say in a banner what is wrong; those with figures how old these are, dimmed."""
    for ui in open_pages:
        expect(ui.page.locator("#banner")).to_contain_text(text, timeout=40_000)
        if ui.page.locator("#live").is_visible():
            expect(ui.page.locator("#banner")).to_contain_text("Figures are of")
            expect(ui.page.locator("#live")).to_contain_text("s old")
            assert ui.page.evaluate("getComputedStyle(document.querySelector('.view')).opacity") < "1", ui.page.url


def recovers(open_pages: list[Ui]) -> None:
    for ui in open_pages:
        expect(ui.page.locator("#banner")).to_be_hidden(timeout=40_000)
        expect(ui.page.locator("#live")).not_to_contain_text("s old")


def test_nobody_answers(browser: Browser, site: tuple[RedisServer, MasterProcess]) -> None:
    redis, master = site
    server = Server(master.url)
    open_pages = pages(browser, server)
    expect(open_pages[0].page.locator("#system")).to_contain_text("trial")
    expect(open_pages[0].page).to_have_title("Overview · JQ trial")
    assert redis.process is not None
    redis.process.send_signal(signal.SIGSTOP)
    try:
        says(open_pages, "Redis")
    finally:
        redis.process.send_signal(signal.SIGCONT)
    recovers(open_pages)
    master.signal(signal.SIGSTOP)
    try:
        # Silence is found out, too; a page that never came says what it waits for.
        says(open_pages, "The server does not answer")
        open_pages[-1].page.get_by_role("link", name="Workers").click()
        expect(open_pages[-1].page.locator("main")).to_contain_text("waiting for the server to answer")
    finally:
        master.signal(signal.SIGCONT)
    recovers(open_pages)
    redis.process.kill()
    says(open_pages, "Redis")
    master.kill()
    says(open_pages, "The server cannot be reached")
    for ui, name in zip(open_pages, ("Queues", "Jobs", "Failures", "Limits", "Schedules"), strict=False):
        ui.page.get_by_role("link", name=name, exact=True).first.click()
        expect(ui.page.locator("main")).to_contain_text("The server cannot be reached")


def test_an_answer_that_took_long_is_as_old_as_its_question(
    browser: Browser, site: tuple[RedisServer, MasterProcess]
) -> None:
    """That of one part of the page, while the others are new."""
    server = Server(site[1].url)
    server.enqueue("a")
    page = Ui(browser.new_context(), server).go("/queue/a", "a").page
    live = page.locator("#live")
    expect(live).to_have_text("Live")
    page.evaluate(
        """() => {
        const { fetch } = window;
        window.delay = 12000;
        window.fetch = async (...asked) => {
            const answer = await fetch(...asked);
            if (new URL(asked[0], location).pathname === '/queues')
                await new Promise((done) => setTimeout(done, window.delay));
            return answer;
        };
    }"""
    )
    expect(live).to_contain_text("s old", timeout=30_000)
    page.evaluate("""() => {
        window.said = new Set();
        const place = document.getElementById('live');
        const note = () => window.said.add(place.textContent);
        new MutationObserver(note).observe(place, { childList: true, subtree: true });
    }""")
    page.wait_for_timeout(30_000)
    said = page.evaluate("[...window.said]")
    assert said and all(text.endswith("s old") for text in said), said
    page.evaluate("window.delay = 0")
    expect(live).to_have_text("Live", timeout=30_000)
