"""The pages of constraints: what is full, and what another limit would do."""

from __future__ import annotations

from playwright.sync_api import expect

from ui_support import Ui


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

    ui.button("Change busy").click()
    ui.dialog.get_by_label("At once").fill("5")
    ui.button("Dry run").click()
    said = "5 at once for each key: 4 jobs of those held could start at once. Now 5 run, 8 are held."
    expect(ui.dialog).to_contain_text(said)
    ui.button("Replace").click()
    ui.told("busy is changed.")
    assert ui.server.get("/constraints?ids=busy")["constraints"][0]["concurrency"] == 5
    ui.page.keyboard.press("Control+z")
    ui.told("Undone.")
    expect(row).to_contain_text("2 at once")
    ui.server.pick("busy", count=20)  # who looks finds them held again
    expect(row.locator("td").nth(3)).to_have_text("8")
    ui.button("Delete busy").click()
    expect(ui.dialog).to_contain_text("What it holds is free at once: 8 jobs.")
    ui.dialog.get_by_role("button", name="Delete").click()
    ui.told("busy is deleted.")
    ui.button("Undo").last.click()
    expect(row).to_contain_text("2 at once")
    assert ui.server.get("/constraints?ids=busy")["constraints"][0]["match"] == {"queue": "busy"}

    ui.server.pick("busy", count=20)
    row.get_by_role("link", name="acme").click()
    expect(ui.page.get_by_label("Find a key")).to_have_value("acme")
    expect(ui.page.locator("tbody tr")).to_have_count(1)
    ui.page.get_by_label("Find a key").fill("b")
    expect(ui.row("bob")).to_be_visible()
    expect(ui.row("acme")).to_have_count(0)
    ui.page.get_by_label("Find a key").fill("")
    expect(ui.page.get_by_text("All keys in use, the fullest first.")).to_be_visible()
    following = ui.page.locator("tbody tr").first.locator("a[href*='/job/']")
    assert ui.server.get(f"/job/{following.inner_text()}")["argument"] == {"to": "acme"}
