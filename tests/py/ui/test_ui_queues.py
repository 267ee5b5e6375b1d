"""The web UI's pages of queues: which does worst and why, and what helps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ui_support import HOSTILE, Server, Ui


@pytest.fixture(scope="module")
def filled(server: Server) -> Iterator[Server]:
    """A queue without workers, one held by a constraint, one paused, one that is served, and one that did some."""
    server.call("PUT", "/constraint/narrow", {"match": {"queue": "held"}, "concurrency": 1})
    server.enqueue("held", 5)
    server.enqueue("unserved", 773)
    server.enqueue("stopped", 2)
    server.call("POST", "/queue/stopped", {"paused": True})
    server.enqueue("fine", 3)
    server.enqueue("other", queue="fine")
    for job in server.pick("fine", count=3):
        server.finish(job)
    server.call("POST", "/worker", {"name": "w-fine", "queues": ["f*"], "max_jobs": 4})
    server.call("POST", "/worker", {"name": "pulls-fine", "queues": ["fine"], "announce": True})
    server.enqueue(HOSTILE)
    yield server


def names(page: Page) -> list[str]:
    return page.locator("tbody tr td:first-child").all_inner_texts()


def test_the_worst_is_first_and_says_why(ui: Ui, filled: Server) -> None:
    filled.pick("held")
    time.sleep(max(0, 10.2 - (time.time() - filled.queue("unserved")["oldest_ready_ms"] / 1000)))
    ui.go("/", "")
    ui.page.get_by_role("link", name="Queues", exact=True).first.click()
    row = ui.row("unserved")
    expect(row).to_contain_text("no worker")
    expect(row).to_contain_text("773")
    expect(row).not_to_contain_text("0 ms")
    expect(ui.row("held by")).to_contain_text("narrow")
    expect(ui.row("stopped")).to_contain_text("paused")
    assert names(ui.page)[0] == "held"  # the oldest: it came first
    ui.page.get_by_role("button", name="Waiting").click()
    expect(ui.page.locator("tbody tr").first).to_contain_text("unserved")
    ui.page.get_by_role("button", name="Queue", exact=True).click()
    expect(ui.page.locator("tbody tr").first.locator("td").first).to_have_text(HOSTILE)
    ui.page.get_by_role("link", name=HOSTILE).click()
    expect(ui.page.locator("h1")).to_contain_text(HOSTILE)
    ui.page.go_back()
    ui.page.get_by_label("Filter by name").fill("serv")
    expect(ui.page.locator("tbody tr")).to_have_count(1)


def test_a_queue_has_its_remedy_beside_its_cause(ui: Ui, filled: Server) -> None:
    page = ui.page
    ui.go("/queue/unserved", "unserved")
    why = page.locator("section").filter(has=page.get_by_role("heading", name="Why it waits"))
    expect(why).to_contain_text("Nobody serves the queue")
    tile = page.locator(".tile").filter(has_text="Oldest ready")
    expect(tile).to_contain_text("no wait has ended")
    expect(tile.locator("time")).to_contain_text(" s")
    ui.go("/queue/held", "held")
    expect(why.get_by_role("link", name="narrow").first).to_have_attribute("href", "/ui/limit/narrow")
    ui.go("/queue/stopped", "stopped")
    why.get_by_role("button", name="Resume stopped").click()
    expect(page.locator("h1 + .actions").get_by_role("button", name="Pause")).to_be_visible()
    assert filled.queue("stopped")["paused"] is False


def test_a_queue_shows_its_names_and_times_and_leads_to_its_workers(ui: Ui, filled: Server) -> None:
    page = ui.page
    ui.go("/queue/fine", "fine")
    expect(page.get_by_role("table", name="Names").get_by_role("row").filter(has_text="other")).to_be_visible()
    run = page.locator("figure").filter(has_text="Run, of those done")
    expect(run.locator("canvas")).to_be_visible()
    height = run.locator("figcaption").bounding_box()["height"]  # type: ignore[index]
    run.locator("[role=group]").focus()
    page.keyboard.press("ArrowLeft")
    expect(run.get_by_role("status")).to_contain_text("p95")
    assert run.locator("figcaption").bounding_box()["height"] == height  # type: ignore[index]
    page.get_by_role("link", name="2 listed").click()
    expect(ui.row("w-fine")).to_contain_text("0")
    expect(ui.row("pulls-fine").get_by_role("link").first).to_have_attribute("href", "/ui/worker/pulls-fine")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_who_floods_a_queue(ui: Ui, server: Server) -> None:
    for customer, count in (("acme", 10), ("hooli", 60)):
        server.enqueue("flood", count, argument={"customer": {"id": customer}, "text": "x" * 100})
    ui.go("/queue/flood", "flood")
    why = ui.page.locator("section").filter(has_text="Of the newest 70 that wait:")
    expect(why.get_by_role("listitem").first).to_have_text("customer.id:hooli 60")
    why.get_by_role("link", name="customer.id:hooli").click()
    expect(ui.page.get_by_label("Find", exact=True)).to_have_value("queue:flood customer.id:hooli")
    ui.button("Cancel").click()
    expect(ui.dialog.get_by_role("button", name="Cancel: 60 jobs")).to_be_enabled()


def test_all_columns_of_queues_fit_a_tablet(ui: Ui, server: Server) -> None:
    long = "invoices.outgoing-to-customers_in_arrears"
    server.call("PUT", f"/constraint/{long}-at-most-one", {"match": {"queue": long}, "concurrency": 1})
    server.enqueue(long, 1300)
    server.enqueue(long, 1200, delay=5000)
    server.finish(server.pick(long)[0], type="failure", reason="other", message="no", should_retry=False)
    server.pick(long)
    for width in (1024, 1440):
        ui.page.set_viewport_size({"width": width, "height": 900})
        ui.go("/queues", "Queues")
        expect(ui.row(long)).to_contain_text("1,298")
        ui.columns_fit()
