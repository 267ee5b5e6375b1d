"""The pages of failures and of enqueueing, in a browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from ui_support import Server, dialog, go, rows


def fail_some(site: Server) -> None:
    site.add_all(
        [{"name": "mail", "max_retry": 0}] * 3 + [{"name": "card", "max_retry": 0, "argument": {"to": "acme"}}] * 5
    )
    site.fail("mail", 3, message="mailbox is full", group="Full")
    site.fail("card", 5, message="the bank is away", group="Away")


def test_what_fails_most_comes_first(page: Page, site: Server) -> None:
    fail_some(site)
    go(page, "/ui/failures")
    expect(rows(page).nth(0)).to_contain_text("Away")
    expect(rows(page).nth(0)).to_contain_text("the bank is away")
    expect(page.get_by_text("8 jobs in 2 groups, 2 new in this time")).to_be_visible()
    kinds = page.get_by_role("table", name="Failures by kind of job").locator("tbody tr")
    expect(kinds.nth(0)).to_contain_text("card")
    expect(kinds.nth(0)).to_contain_text("100 %")
    page.get_by_label("Order").select_option("newest first")
    assert "order=last" in page.url
    expect(rows(page).nth(0)).to_contain_text("card")
    expect(rows(page).nth(0).get_by_text("new", exact=True)).to_be_visible()
    page.get_by_label("Time range").select_option("Last 1 day")
    assert "range=1d" in page.url
    expect(page.get_by_text("Failed attempts, by the hour")).to_be_visible()


def test_new_is_what_came_since_the_last_deploy(page: Page, site: Server) -> None:
    fail_some(site)
    marked = site.call("POST", "/mark", {"text": "v2 <b>"})["time_ms"]
    site.call("POST", "/mark", {"text": "v1", "time_ms": marked - 1000_000})
    site.call("POST", "/mark", {"text": "of old", "time_ms": marked - 9000_000})
    site.add_all([{"name": "mail", "max_retry": 0}] * 2)
    site.fail("mail", 1, message="mailbox is full", group="Full")
    site.fail("mail", 1, message="no such address", group="Unknown")
    go(page, "/ui/failures")
    expect(page.get_by_text("1 new since v2 <b>")).to_be_visible()
    new = page.get_by_title("New since v2 <b>: none of its jobs that are kept failed before")
    expect(rows(page).filter(has=new)).to_have_count(1)
    expect(rows(page).filter(has=new)).to_contain_text("Unknown")
    expect(page.get_by_role("group", name="marked: v2 <b>, v1")).to_be_visible()
    # A deploy outside of the time says nothing about it.
    go(page, f"/ui/failures?from={marked - 500_000}&to={marked - 1}")
    expect(page.get_by_text("3 new in this time")).to_be_visible()
    go(page, "/ui/queue/mail")
    expect(page.get_by_role("group", name="marked: v2 <b>, v1")).to_have_count(3)


def test_a_group_is_retried_whole(page: Page, site: Server) -> None:
    fail_some(site)
    go(page, "/ui/failures")
    page.get_by_role("button", name="Retry all of Full").click()
    expect(dialog(page)).to_contain_text("mailbox is full")
    dialog(page).get_by_role("button", name="Retry: 3 jobs").click()
    expect(page.get_by_text("3 jobs put in the queue again.")).to_be_visible()
    expect(page.get_by_role("table", name="Failures by group").locator("tbody tr")).to_have_count(1)
    assert (site.queue("mail")["queued"], site.queue("card")["error"]) == (3, 5)


def enqueue(page: Page) -> None:
    page.get_by_role("button", name="Enqueue", exact=True).click()


def test_a_job_is_enqueued_with_its_options(page: Page, site: Server) -> None:
    go(page, "/ui/enqueue")
    page.get_by_label("Name").fill("mail")
    page.get_by_label("Queue", exact=True).fill("slow")
    page.get_by_label("Argument").fill('{"to": ["ada"], "n": 1152921504606846977, "x": 1.0}')
    page.get_by_text("Options").click()
    page.get_by_label("Priority").fill("-5")
    page.get_by_label("Tags").fill("eu, billing")
    page.get_by_label("Keep result").select_option("yes")
    enqueue(page)
    made = page.get_by_role("region", name="Enqueued").get_by_role("link")
    expect(made).to_contain_text("mail")
    job = site.job((made.get_attribute("href") or "").rpartition("/")[2])
    assert (job["queue"], job["priority"], job["tags"], job["keep_result"]) == (
        "slow",
        -5,
        ["eu", "billing"],
        True,
    )
    assert job["argument"] == {"to": ["ada"], "n": 2**60 + 1, "x": 1.0}
    # 1.0 is not the integer 1.
    assert isinstance(job["argument"]["x"], float)


def test_json_that_is_wrong_is_told_at_its_field(page: Page, site: Server) -> None:
    go(page, "/ui/enqueue?name=mail")
    page.get_by_label("Argument").fill('{"a": [1, 2,]}')
    page.get_by_label("Argument").blur()
    expect(page.get_by_text("not JSON: Unexpected token ']'")).to_be_visible()
    enqueue(page)
    expect(page.get_by_label("Argument")).to_be_focused()
    assert site.get("/queues")["queues"] == []


def test_a_unique_key_that_is_taken(page: Page, site: Server) -> None:
    job = site.add("mail", unique="one")
    go(page, f"/ui/job/{job}")
    page.get_by_role("link", name="Enqueue again…").click()
    expect(page.get_by_label("Unique", exact=True)).to_have_value("one")
    enqueue(page)
    expect(page.get_by_text("was there already: its key is taken")).to_be_visible()
    assert site.queue("mail")["queued"] == 1


def test_enqueue_again_begins_as_the_job_was(page: Page, site: Server) -> None:
    job = site.add("mail", queue="slow", argument={"n": 1.0, "big": 2**60 + 1}, priority=4, max_retry=2, tags=["eu"])
    go(page, f"/ui/enqueue?as={job}")
    expect(page.get_by_label("Queue", exact=True)).to_have_value("slow")
    expect(page.get_by_label("Priority")).to_have_value("4")
    enqueue(page)
    link = page.get_by_role("region", name="Enqueued").get_by_role("link")
    again = site.job((link.get_attribute("href") or "").rpartition("/")[2])
    assert again["id"] != job
    before = site.job(job)
    assert all(again[name] == before[name] for name in ("argument", "priority", "max_retry", "tags", "queue"))
    assert isinstance(again["argument"]["n"], float)
