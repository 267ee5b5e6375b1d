"""The pages of constraints: what is full, and what another limit would do."""

from __future__ import annotations

from playwright.sync_api import expect

from ui_support import Ui, browser, server, tab, ui

__all__ = ["browser", "server", "tab", "ui"]


def test_which_customer_is_full_and_what_another_limit_would_do(ui: Ui) -> None:
    body = {"match": {"queue": "busy"}, "by": "argument.to", "concurrency": 2}
    ui.server.call("PUT", "/constraint/busy", body)
    for to, count in (("acme", 9), ("bob", 3), ("carl", 1)):
        ui.server.enqueue("busy", count, argument={"to": to})
    ui.server.pick("busy", count=20)
    ui.go("/", "Overview")
    ui.page.get_by_role("navigation").get_by_role("link", name="Limits").click()
    row = ui.row("busy")
    expect(row).to_contain_text("acme 7 held")
    expect(row.locator("td").nth(3)).to_have_text("8")
    expect(row.locator("td").nth(4)).to_have_text("2 of 3")
    expect(ui.page.locator("tbody tr").first).to_contain_text("busy")  # the fullest

    ui.button("Change the limit of busy: 2 at once").click()
    number = ui.page.get_by_label("At once under busy")
    expect(number).to_be_focused()
    expect(ui.page.get_by_role("status").filter(has_text="at once")).to_contain_text("nothing that is held")
    number.fill("5")
    said = "5 at once for each key: 4 jobs of those held could start at once. Now 5 run, 8 are held."
    expect(ui.page.get_by_text(said)).to_be_visible()
    number.press("Escape")
    expect(ui.button("Change the limit of busy: 2 at once")).to_be_focused()
    ui.page.keyboard.press("Enter")
    ui.page.get_by_label("At once under busy").fill("4")
    ui.page.keyboard.press("Enter")
    ui.told("busy: 4 at once.")
    changed = ui.server.get("/constraints?ids=busy")["constraints"][0]
    assert (changed["concurrency"], changed["by"]) == (4, "argument.to")
    ui.page.keyboard.press("Control+z")
    ui.told("Undone.")
    expect(ui.button("Change the limit of busy: 2 at once")).to_be_visible()
    ui.server.pick("busy")  # who looks finds them held again
    expect(row.locator("td").nth(3)).to_have_text("8")
    ui.button("Delete busy").click()
    expect(ui.dialog).to_contain_text("What it holds is free at once: 8 jobs.")
    ui.dialog.get_by_role("button", name="Delete").click()
    ui.told("busy is deleted.")
    ui.button("Undo").last.click()
    expect(ui.row("busy")).to_contain_text("2 at once")
    assert ui.server.get("/constraints?ids=busy")["constraints"][0]["match"] == {"queue": "busy"}

    ui.server.pick("busy", count=20)
    ui.row("busy").get_by_role("link", name="acme").click()
    expect(ui.page.get_by_label("Find a key")).to_have_value("acme")
    expect(ui.page.locator("tbody tr")).to_have_count(1)
    ui.page.get_by_label("Find a key").fill("b")
    expect(ui.row("bob")).to_be_visible()
    expect(ui.row("acme")).to_have_count(0)
    ui.page.get_by_label("Find a key").fill("")
    expect(ui.page.get_by_text("All keys in use, the fullest first.")).to_be_visible()
    expect(ui.page.locator("tbody tr").first).to_contain_text("acme")
    panel = ui.page.locator("section").filter(has_text="Queues it holds jobs of")
    expect(panel.get_by_role("link", name="busy")).to_be_visible()
    following = ui.page.locator("tbody tr").first.locator("a[href*='/job/']")
    assert ui.server.get(f"/job/{following.inner_text()}")["argument"] == {"to": "acme"}
    ui.page.get_by_label("Show").select_option("all, by value")
    expect(ui.page.get_by_text("All keys in use, in order of their value.")).to_be_visible()
