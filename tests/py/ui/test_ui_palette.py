"""The palette: all that has a name, jobs by a line, pages and actions, by the keyboard alone."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from ui_support import HOSTILE, NARROW, Server, dialog, go, is_too_wide, open_page


def test_anything_is_found_and_opened_by_keyboard(page: Page, site: Server) -> None:
    job = site.add("mail.send", tags=["mailing"], argument={"customer": {"id": "acme"}})
    site.add("report", argument={"customer": {"id": "zeta"}})
    site.add(HOSTILE)
    site.call("PUT", "/constraint/per-mail", {"match": {"name": "mail.*"}, "concurrency": 1})
    site.call("POST", "/schedule/mails", {"every": 3600, "job": {"name": "mail.send"}})
    worker = site.call("POST", "/worker", {"name": "mailer", "queues": ["mail.send"]})["worker_id"]
    go(page, "/ui/")
    expect(page.locator("h1")).to_be_visible()
    options = dialog(page).get_by_role("option")

    def search(text: str) -> None:
        page.keyboard.press("Control+k")
        expect(dialog(page).get_by_role("combobox")).to_be_focused()
        page.keyboard.type(text)

    search("mail")
    for group, text in (
        ("Queues", "mail.send"), ("Limits", "per-mail"), ("Schedules", "mails"),
        ("Tags", "mailing"), ("Workers", "mailer"),
    ):  # fmt: skip
        found = dialog(page).get_by_role("group", name=re.compile(f"^{group}"))
        expect(found.get_by_role("option")).to_contain_text(text)
    expect(dialog(page).get_by_role("group", name="Workers")).to_contain_text(worker)
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/queue/mail.send")

    # Three steps to the jobs of a customer: the palette, a line, and the list.
    search("customer.id:acme")
    expect(options.first).to_contain_text(job)
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_text("Find jobs: customer.id “acme”")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/jobs?q=customer.id%3Aacme")
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)

    search(job)
    expect(options.first).to_have_text(job)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/job/{job}")

    search("limits")
    expect(options).to_have_count(2)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/limits")

    search("<img src=x")
    expect(dialog(page).get_by_role("group", name="Queues")).to_contain_text("<img src=x")
    assert page.locator("dialog img").count() == 0
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    # Where there is no filter the slash opens it.
    go(page, "/ui/schedules")
    expect(page.locator("h1")).to_be_visible()
    page.keyboard.press("/")
    expect(dialog(page).get_by_role("combobox")).to_be_focused()
    page.keyboard.type("nobody is called so")
    expect(dialog(page)).to_contain_text("Nothing is called so.")
    # A master that is away is told there, too.
    page.context.set_offline(True)
    page.keyboard.type("!")
    expect(dialog(page)).to_contain_text("The server cannot be reached.")
    page.context.set_offline(False)


def test_by_hand_and_on_a_narrow_screen(browser: Browser, site: Server) -> None:
    site.add("q" * 200)
    with open_page(browser, site, viewport=NARROW, color_scheme="dark") as page:
        go(page, "/ui/")
        page.get_by_role("button", name="Search").click()
        dialog(page).get_by_role("combobox").fill("qqq")
        expect(dialog(page).get_by_role("group", name="Queues").get_by_role("option")).to_be_visible()
        assert not is_too_wide(page)
        dialog(page).get_by_role("group", name="Queues").get_by_role("option").click()
        expect(page).to_have_url(re.compile("/ui/queue/q"))
