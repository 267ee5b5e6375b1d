"""Buttons on alerts, in a browser: each does what helps, and the alert goes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from ui_support import Server, Ui


@pytest.fixture(scope="module", autouse=True)
def jobs(server: Server) -> dict[str, list[str]]:
    """Before anybody looks: what was looked at rests for half a minute."""
    root = server.add("root")
    server.enqueue("after", 2, depends=[root])
    server.fail("root")
    server.enqueue("bad", 12)
    failed = server.fail("bad", 12, group="ValueError in charge")
    server.call("POST", "/queue/media", {"set": {"late_after": 1}})
    server.enqueue("media", 30, timeout=3600)
    server.finish(*server.pick("media", count=29))
    [hanging] = server.pick("media")
    return {"root": [root], "bad": failed, "media": [hanging["id"]]}


def alert(ui: Ui, text: str) -> Locator:
    """Opened, if it is folded below others."""
    ui.go("/", "Overview")
    line = ui.page.get_by_label("Alerts").locator(".alert").filter(has_text=text)
    line.first.wait_for(state="attached")
    ui.page.evaluate("for (const one of document.querySelectorAll('details.alerts-more')) one.open = true")
    return line.first


def test_retry_lets_a_job_run_that_others_wait_for(ui: Ui, server: Server, jobs: dict[str, list[str]]) -> None:
    line = alert(ui, "(root) failed, and 2 jobs wait for it")
    line.get_by_role("button", name="Retry: Job").click()
    ui.told("It is in the queue again.")
    expect(line).to_have_count(0)
    assert server.job(jobs["root"][0])["status"] == "queued"


def test_retry_all_retries_a_group(ui: Ui, server: Server, jobs: dict[str, list[str]]) -> None:
    line = alert(ui, "New failure ValueError in charge")
    line.get_by_role("button", name="Retry all: New failure").click()
    ui.dialog.get_by_role("button", name="Retry: 12 jobs").click()
    ui.told("12 jobs")
    assert {server.job(job_id)["status"] for job_id in jobs["bad"]} == {"queued"}


def test_take_jobs_takes_them_from_a_worker_that_hangs(ui: Ui, server: Server, jobs: dict[str, list[str]]) -> None:
    line = alert(ui, "Worker hand hangs")
    line.get_by_role("button", name="Take jobs: Worker hand hangs").click()
    ui.dialog.get_by_role("button", name="Take jobs").click()
    ui.told("1 job waits again.")
    expect(line).to_have_count(0)
    assert server.job(jobs["media"][0])["status"] == "queued"
