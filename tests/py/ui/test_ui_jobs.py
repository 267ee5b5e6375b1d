"""The page of jobs, in a browser: finding, looking inside, choosing, and acting on many."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from ui_support import Server, dialog, go, rows


def test_what_a_link_says_stands_in_the_line(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail", "tags": ["eu"]}, {"name": "mail"}, {"name": "report", "queue": "slow"}])
    go(page, "/ui/jobs?name=mail&tag=eu")
    expect(rows(page)).to_have_count(1)
    line = page.get_by_label("Find", exact=True)
    expect(line).to_have_value("name:mail tag:eu")
    expect(page).to_have_url(f"{site.url}/ui/jobs?q=name%3Amail+tag%3Aeu")
    page.reload()
    expect(rows(page)).to_have_count(1)
    line.fill("name:mail")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(3)


def test_states_are_tabs_with_numbers(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail"}] * 3 + [{"name": "mail", "delay": 100}] * 2)
    go(page, "/ui/jobs")
    expect(page.get_by_role("link", name="scheduled 2")).to_be_visible()
    page.get_by_role("link", name="queued 3").click()
    expect(rows(page)).to_have_count(3)
    assert page.url.endswith("/ui/jobs?status=queued")
    page.get_by_role("link", name="waiting 5").click()
    expect(rows(page)).to_have_count(5)


def test_a_line_finds_jobs_by_their_arguments_worker_and_time(page: Page, site: Server) -> None:
    site.add_all(
        [{"name": "mail", "argument": {"customer": {"id": f"c{number % 3}"}, "n": number}} for number in range(9)]
    )
    [ran] = site.fail("mail", 1, message="mailbox is full")
    go(page, "/ui/jobs")
    expect(rows(page)).to_have_count(9)
    line = page.get_by_label("Find", exact=True)
    line.fill("customer.id:c1")
    expect(rows(page)).to_have_count(3)
    expect(page.locator(".scan")).to_have_text("Looked at all 9 jobs.")
    expect(rows(page).first).to_contain_text('{"customer":{"id":"c1"},"n":7}')
    line.fill("customer.id:c1 n:>4")
    expect(rows(page)).to_have_count(1)
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(line).to_have_value("customer.id:c1 n:>4")
    line.fill("slower:soon")
    expect(page.get_by_role("alert").filter(has_text="expected a duration")).to_be_visible()
    line.fill("status:error c0")
    expect(rows(page)).to_have_attribute("data-key", ran)
    # What is found by a line is what is acted on.
    line.fill("customer.id:c2")
    expect(rows(page)).to_have_count(3)
    page.get_by_role("button", name="Cancel…").click()
    expect(dialog(page)).to_contain_text("customer.id “c2”")
    dialog(page).get_by_role("button", name="Cancel: 3 jobs").click()
    expect(page.get_by_text("3 jobs cancelled.")).to_be_visible()
    line.fill("status:can")
    expect(page.locator("datalist option[value='status:cancelled']")).to_be_attached()
    line.fill("que")
    expect(page.locator("datalist option[value='queue:']")).to_be_attached()


def test_a_page_stands_in_the_address(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail", "argument": {"n": number % 2}} for number in range(230)])
    go(page, "/ui/jobs?q=n:1")
    expect(rows(page)).to_have_count(50)
    expect(page.locator(".scan")).to_contain_text("Looked at")
    first = rows(page).first.get_attribute("data-key")
    page.get_by_role("button", name="Next →").click()
    expect(rows(page).first).not_to_have_attribute("data-key", first or "")
    second = rows(page).first.get_attribute("data-key")
    page.reload()
    expect(rows(page).first).to_have_attribute("data-key", second or "")
    page.get_by_role("button", name="← First page").click()
    expect(rows(page).first).to_have_attribute("data-key", first or "")
    page.go_back()
    expect(rows(page).first).to_have_attribute("data-key", second or "")


def test_some_are_chosen_with_shift(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail"}] * 6)
    go(page, "/ui/jobs")
    boxes = page.locator("input.chooser")
    boxes.nth(1).click()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(page.get_by_text("3 jobs chosen:")).to_be_visible()
    page.get_by_role("button", name="Choose none").click()
    expect(page.get_by_text("All that match:")).to_be_visible()


def test_chosen_jobs_are_cancelled_after_a_preview(page: Page, site: Server) -> None:
    ids = site.add_all([{"name": "mail"}] * 4)
    go(page, "/ui/jobs?status=queued")
    page.locator("input.chooser").nth(0).click()
    page.locator("input.chooser").nth(1).click()
    page.get_by_role("button", name="Cancel…").click()
    expect(dialog(page)).to_contain_text("2 jobs.")
    expect(dialog(page)).to_contain_text(ids[3])
    assert site.job(ids[3])["status"] == "queued"
    dialog(page).get_by_role("button", name="Cancel: 2 jobs").click()
    expect(page.get_by_text("2 jobs cancelled.")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    assert [site.job(job)["status"] for job in ids] == ["queued", "queued", "cancelled", "cancelled"]


def test_nothing_is_chosen_before_it_is_there(page: Page, site: Server) -> None:
    """Else whoever is quick would choose nothing, and act on all that match."""
    site.add_all([{"name": "mail"}] * 3 + [{"name": "other"}])
    held: list[Route] = []
    every = page.get_by_label("Choose all of this page")
    answers = False
    page.route("**/jobs?*brief=1*", lambda route: route.continue_() if answers else held.append(route))
    go(page, "/ui/jobs?queue=mail")
    expect(every).to_be_disabled()
    while not held:
        page.wait_for_timeout(20)
    held.pop().continue_()
    expect(rows(page)).to_have_count(3)
    expect(every).to_be_enabled()
    # Nor from what is shown of a question before.
    page.get_by_label("Find", exact=True).fill("queue:other")
    page.keyboard.press("Enter")
    expect(every).to_be_disabled()
    page.locator("input.chooser").first.click(force=True)
    expect(page.get_by_text("All that match:")).to_be_visible()
    answers = True
    while held:
        held.pop().continue_()
    expect(rows(page)).to_have_count(1)
    every.click()
    expect(page.get_by_text("1 job chosen:")).to_be_visible()


def test_all_that_match_are_retried_and_no_others(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail", "max_retry": 0}] * 250 + [{"name": "other", "max_retry": 0}] * 5)
    site.fail("mail", 250, group="A")
    site.fail("other", 5, group="B")
    go(page, "/ui/jobs?group=A")
    page.get_by_role("button", name="Retry…").click()
    expect(dialog(page)).to_contain_text("Only: state error; group “A”.")
    dialog(page).get_by_role("button", name="Retry: 250 jobs").click()
    expect(page.get_by_text("250 jobs put in the queue again.")).to_be_visible()
    assert site.get("/queues?names=mail")["queues"][0]["queued"] == 250
    assert site.get("/queues?names=other")["queues"][0]["error"] == 5


def test_discarding_everything_needs_its_name_typed(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail"}] * 3)
    go(page, "/ui/jobs")
    page.get_by_role("button", name="Discard…").click()
    send = dialog(page).get_by_role("button", name="Discard: 3 jobs")
    send.click()
    expect(dialog(page)).to_contain_text("No filter is set")
    assert site.get("/queues?names=mail")["queues"][0]["queued"] == 3
    dialog(page).get_by_label("No filter is set").fill("Discard")
    send.click()
    expect(page.get_by_text("3 jobs discarded.")).to_be_visible()
    assert site.get("/queues?names=mail")["queues"][0]["queued"] == 0


def test_priority_of_those_chosen_and_run_now(page: Page, site: Server) -> None:
    ids = site.add_all([{"name": "mail"}] * 3 + [{"name": "mail", "delay": 1000}] * 2)
    go(page, "/ui/jobs?queue=mail&status=queued")
    page.get_by_label("Choose all of this page").click()
    page.get_by_role("button", name="Change priority…").click()
    dialog(page).get_by_role("button", name="Change priority: 3 jobs").click()
    expect(dialog(page)).to_contain_text("New priority is needed")
    dialog(page).get_by_label("New priority").fill("-7")
    dialog(page).get_by_role("button", name="Change priority: 3 jobs").click()
    expect(page.get_by_text("3 jobs changed.")).to_be_visible()
    assert [site.job(job)["priority"] for job in ids] == [-7, -7, -7, 0, 0]
    page.get_by_role("link", name="scheduled 2").click()
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Choose all of this page").click()
    page.get_by_role("button", name="Run now…").click()
    dialog(page).get_by_role("button", name="Run now: 2 jobs").click()
    expect(page.get_by_text("2 jobs made ready.")).to_be_visible()
    assert site.get("/queues?names=mail")["queues"][0]["queued"] == 5


def test_what_is_done_to_many_can_be_stopped(page: Page, site: Server) -> None:
    site.add_all([{"name": "mail"}] * 60_000)
    go(page, "/ui/jobs?queue=mail")
    page.get_by_role("button", name="Discard…").click()
    dialog(page).get_by_role("button", name="Discard: ").click()
    dialog(page).get_by_role("button", name="Stop").click()
    expect(page.get_by_text("; then it was stopped.")).to_be_visible()
    assert 0 < site.get("/queues?names=mail")["queues"][0]["queued"] < 60_000


def test_a_master_out_of_reach_is_told_in_the_dialog(page: Page, site: Server) -> None:
    job = site.add("mail")
    go(page, "/ui/jobs?status=queued")
    page.get_by_role("button", name="Discard…").click()
    send = dialog(page).get_by_role("button", name="Discard: 1 job")
    expect(send).to_be_enabled()
    page.context.set_offline(True)
    send.click()
    expect(dialog(page).get_by_role("alert")).to_have_text("The server cannot be reached.")
    page.context.set_offline(False)
    dialog(page).get_by_role("button", name="Close").click()
    assert site.job(job)["status"] == "queued"
