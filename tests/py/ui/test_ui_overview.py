"""The overview in a browser: its verdict and alerts, history by queue, deploys and what they changed."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Locator, expect

from ui_support import Server, Ui

OVER = {"type": "failure", "reason": "other", "message": "no", "should_retry": False}


def tile(ui: Ui, name: str) -> Locator:
    return ui.page.locator(".tile").filter(has=ui.page.get_by_text(name, exact=True))


@pytest.fixture(scope="module", autouse=True)
def data(server: Server) -> None:
    """Before anybody looks: what was looked at rests for half a minute."""
    server.enqueue("stands", 2)
    server.call("POST", "/queue/stands", {"paused": True})
    server.call("PUT", "/constraint/two", {"match": {"name": "held"}, "concurrency": 2})
    server.call("POST", "/queue/held", {"set": {"late_after": 1000}})
    server.enqueue("held", 3, timeout=3600)
    server.pick("held", count=3)
    server.enqueue("mail", 4)
    jobs = server.pick("mail", count=4)
    for job in jobs[:3]:
        server.finish(job)
    server.finish(jobs[3], **OVER)


def test_verdict_and_alerts_with_what_helps(ui: Ui, server: Server) -> None:
    ui.go("/", "Overview")
    line = ui.page.get_by_label("Alerts").locator(".alert").filter(has_text="Queue stands is paused")
    expect(ui.page.locator(".verdict")).to_contain_text("Queue stands is paused; 2 jobs wait")
    line.get_by_role("link", name="Show").click()
    expect(ui.page.locator("h1")).to_contain_text("stands")
    ui.go("/", "Overview")
    line.get_by_role("button", name="Resume").click()
    ui.told("stands is resumed.")
    expect(line).to_have_count(0)
    expect(ui.page.locator(".verdict")).not_to_contain_text("paused")
    assert server.queue("stands")["paused"] is False


def test_tiles_and_history(ui: Ui) -> None:
    ui.go("/", "Overview")
    expect(tile(ui, "Running").locator(".tile-value")).to_have_text("2")
    expect(tile(ui, "Longest wait p95").locator(".tile-value")).to_contain_text(re.compile(r"\d+ m?s"))
    expect(tile(ui, "Slots in use").locator(".tile-value")).to_have_text("–")  # nothing is not 0
    expect(tile(ui, "Waiting")).to_contain_text(re.compile(r"\d.* enqueued, 5 min"))
    expect(ui.page.get_by_role("figure").filter(has_text="Ended, by the minute")).to_be_visible()
    waits = ui.page.get_by_role("group", name="Wait until the first start; ")
    waits.focus()
    ui.page.keyboard.press("ArrowLeft")
    expect(ui.page.locator("figure").filter(has=waits).get_by_role("status")).to_contain_text("p95")


def test_a_deploy_is_marked_and_compared(ui: Ui, server: Server) -> None:
    ui.go("/changes", "Changes")
    expect(ui.page.locator(".empty")).to_contain_text("jqmaster call mark")
    ui.go("/", "Overview")
    ui.button("Mark a deploy").click()
    ui.dialog.get_by_label("What happened").fill("v1.4 <b>")
    ui.dialog.get_by_role("button", name="Mark").click()
    ui.told("Marked: v1.4 <b>")
    expect(ui.page.locator(".marks")).to_contain_text("v1.4 <b>")
    ui.page.get_by_role("link", name="What changed since?").click()
    expect(ui.page.locator("h1")).to_have_text("Changes")
    expect(ui.page.locator("h2")).to_contain_text("v1.4 <b>")
    expect(ui.page.locator(".empty")).to_contain_text("Nothing")  # the minute of the mark is left out
    # Of a deploy before what the tests above did all of that is after it.
    ago_ms = int(time.time() * 1000) - 10 * 60_000
    server.call("POST", "/mark", {"text": "v1.3", "time_ms": ago_ms})
    ui.go(f"/changes?since={ago_ms}", "Changes")
    row = ui.row("mail")
    expect(row).to_contain_text("new")
    expect(row).to_contain_text("25 %")
