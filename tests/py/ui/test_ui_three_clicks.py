"""What is asked in an incident is answered within three clicks from the overview."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Locator, expect

from ui_support import Server, Ui, browser, server, tab, ui  # noqa: F401 (fixtures)

MOST = 3


class Clicks:
    """From the overview on: no more clicks than that."""

    def __init__(self, ui: Ui) -> None:
        self.page = ui.go("/", "Overview").page
        self.count = 0

    def on(self, place: Locator) -> Clicks:
        self.count += 1
        assert self.count <= MOST
        place.click()
        return self

    def to(self, name: str) -> Clicks:
        return self.on(self.page.get_by_role("link", name=name, exact=True))

    def tile(self, name: str) -> Clicks:
        return self.on(self.page.locator("a.tile").filter(has=self.page.get_by_text(name, exact=True)))


def test_what_an_incident_asks(ui: Ui, server: Server) -> None:
    limit = {"match": {"queue": "mail"}, "by": "argument.customer.id", "concurrency": 2}
    server.call("PUT", "/constraint/per-customer", limit)
    server.enqueue("mail", 4, argument={"customer": {"id": "acme"}})
    server.enqueue("mail", 1, argument={"customer": {"id": "7"}})
    running = [job["id"] for job in server.pick("mail", "mail-1", count=9)]
    assert len(running) == 3
    worker = {"name": "mail-1", "queues": ["mail"], "max_jobs": 4, "announce": True, "running": running}
    server.call("POST", "/worker", {**worker, "host": "h", "pid": 1, "version": "1", "knows": ["mail"]})
    server.call("PUT", "/schedule/nightly", {"job": {"name": "report"}, "cron": "0 3 * * *"})
    server.enqueue("other")
    server.finish(server.pick("other")[0])
    # Minutes are compared, without that of the mark: all of the above is behind this one.
    server.call("POST", "/mark", {"text": "v1.4", "time_ms": int(time.time() * 1000) - 600_000})
    page = ui.page

    # The slowest queue, and its cause.
    Clicks(ui).tile("Oldest wait")
    expect(page.locator("h1")).to_contain_text("mail")
    expect(page.locator("section").filter(has_text="Why it waits")).to_contain_text("no room for it: per-customer")

    # Which customer is full, and the jobs of a customer.
    clicks = Clicks(ui).tile("Fullest limit")
    full = page.locator("tbody tr").first
    expect(full).to_contain_text("acme")
    expect(full).to_contain_text("2 of 2")
    clicks.to("acme")
    expect(page).to_have_url(re.compile(r"/jobs\?q=customer"))
    expect(page.locator("tbody tr")).to_have_count(4)
    # Text that looks like a number.
    Clicks(ui).tile("Fullest limit").to("7")
    expect(page.locator("tbody tr")).to_have_count(1)

    # What the last deploy changed.
    Clicks(ui).to("What changed since?")
    expect(page.locator("h2")).to_contain_text("v1.4")
    expect(ui.row("other")).to_contain_text("new")

    # A schedule, now.
    Clicks(ui).to("Schedules").on(ui.button("Run now: nightly"))
    ui.told("nightly runs now")
    assert server.queue("report")["queued"] == 1

    # All jobs of a worker that is stuck.
    Clicks(ui).to("Workers").on(ui.button("Take jobs from mail-1")).on(ui.button("Take 3 jobs"))
    ui.told("3 jobs of mail-1 wait again.")
    assert server.queue("mail")["running"] == 0
