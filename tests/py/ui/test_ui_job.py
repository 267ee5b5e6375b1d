"""The page of a job, in a browser: what it is, why it waits, what happened, and what can be done."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ui_support import HOSTILE, Server, dialog, go, is_too_wide


def section(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name)


def test_argument_and_result_as_trees_raw_on_demand(page: Page, site: Server) -> None:
    argument = {"to": {"name": "Ada"}, "raw": {"$bin": "AAEC/w=="}, "at": {"$time": "2026-01-31T12:00:00Z"}}
    job = site.add("mail", argument=argument, keep_result=True)
    site.finish(site.pick("mail")[0], result={"sent": True})
    go(page, f"/ui/job/{job}")
    expect(section(page, "Argument")).to_contain_text('name: "Ada"')
    expect(section(page, "Argument")).to_contain_text("binary, 4 bytes, base64: AAEC/w==")
    expect(section(page, "Argument")).to_contain_text("at: 2026-01-31T12:00:00+00:00")
    expect(section(page, "Result")).to_contain_text("sent: true")
    section(page, "Argument").get_by_role("button", name="Raw").click()
    expect(section(page, "Argument").locator("pre")).to_contain_text('"$bin": "AAEC/w=="')
    section(page, "Argument").get_by_role("button", name="base64").wait_for(state="hidden")


def test_large_values_are_shown_in_parts(page: Page, site: Server) -> None:
    job = site.add("mail", argument={"text": "x" * 1_000_000, "list": list(range(2000)), "n": 2**60 + 1})
    go(page, f"/ui/job/{job}")
    argument = section(page, "Argument")
    expect(argument).to_contain_text("1152921504606846977")
    argument.get_by_role("button", name="999600 more characters").click()
    expect(argument.get_by_role("button", name="more characters")).to_have_count(0)
    argument.locator("summary", has_text="list").click()
    expect(argument.get_by_role("button", name="1900 more")).to_be_visible()
    assert page.locator("*").count() < 1500
    assert not is_too_wide(page)


def test_attempts_with_what_came_between(page: Page, site: Server) -> None:
    job = site.add("mail", max_retry=3, retry_base=0, retry_cap=0)
    site.fail("mail", message="first", should_retry=True)
    site.call("POST", "/jobs/retry", {"ids": [job]})
    site.fail("mail", message="second")
    go(page, f"/ui/job/{job}")
    happened = section(page, "What happened")
    expect(happened).to_contain_text("Attempt 1 failed after")
    expect(happened).to_contain_text("Attempt 2 failed after")
    expect(happened.locator(".event rect.time-part")).to_have_count(2)
    expect(section(page, "Last failure")).to_contain_text("second")
    expect(section(page, "Facts")).to_contain_text("2 started; 1 of 3 retries used")


def test_what_waits_for_it_and_what_it_waited_for(page: Page, site: Server) -> None:
    job = site.add("first", argument={"customer": {"id": "acme"}, "n": 12, "text": "x" * 100})
    others = [site.add(f"next{number}", depends=[job]) for number in range(14)]
    site.call("PUT", "/constraint/one", {"match": {"name": "first"}, "concurrency": 1})
    holder = site.add("first")
    [running] = site.pick("first")
    assert running["id"] == job
    go(page, f"/ui/job/{job}")
    waits = section(page, "What waits for it")
    expect(waits.get_by_role("link")).to_have_count(12)
    expect(waits).to_contain_text("14 jobs wait for it. 2 more are not shown.")
    expect(page.locator(".job-line").get_by_role("link", name="hand")).to_be_visible()
    expect(section(page, "What happened")).to_contain_text("for a worker")
    go(page, f"/ui/job/{holder}")
    expect(section(page, "What happened")).to_contain_text("held by one")
    go(page, f"/ui/job/{others[0]}")
    expect(section(page, "What happened")).to_contain_text("for other jobs")
    # From a job to those of the same customer: one click.
    go(page, f"/ui/job/{job}")
    section(page, "Argument").get_by_role("link", name="customer.id:acme").click()
    expect(page).to_have_url(f"{site.url}/ui/jobs?q=customer.id%3Aacme")
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)


def test_a_paused_queue_is_named_and_can_be_resumed(page: Page, site: Server) -> None:
    job = site.add("mail")
    site.call("POST", "/queue/mail", {"paused": True})
    go(page, f"/ui/job/{job}")
    why = section(page, "Why it waits")
    expect(why).to_contain_text("Its queue mail is paused.")
    why.get_by_role("button", name="Resume the queue").click()
    expect(why).not_to_contain_text("is paused")
    assert not site.get("/queues?names=mail")["queues"][0]["paused"]


def test_a_full_constraint_with_its_use(page: Page, site: Server) -> None:
    limit = {"match": {"name": "mail"}, "by": "argument.customer", "concurrency": 2}
    site.call("PUT", "/constraint/per-customer", limit)
    ids = site.add_all([{"name": "mail", "argument": {"customer": "globex"}}] * 4)
    site.pick("mail", count=2)
    go(page, f"/ui/job/{ids[3]}")
    why = section(page, "Why it waits")
    expect(why).to_contain_text("Limit per-customer for globex is full.")
    expect(why.get_by_role("meter")).to_have_attribute("aria-valuenow", "2")
    expect(why).to_contain_text("1 job is before it.")
    site.call("PUT", "/constraint/asks", {"match": {"name": "ask"}, "rate": {"limit": 1, "period": 600}})
    ids = site.add_all([{"name": "ask"}] * 2)
    site.pick("ask", count=2)
    go(page, f"/ui/job/{ids[1]}")
    expect(why).to_contain_text("It has room again in 9 min")
    expect(why).to_contain_text("starts: 1 in 10 min")


def test_a_hold_is_called_one(page: Page, site: Server) -> None:
    limit = {"match": {"name": "mail"}, "by": "argument.customer", "concurrency": 4}
    site.call("PUT", "/constraint/per-customer", limit)
    job = site.add("mail", argument={"customer": "acme"})
    site.call("POST", "/constraint/per-customer/hold", {"by": "acme", "seconds": 600})
    go(page, f"/ui/job/{job}")
    why = section(page, "Why it waits")
    expect(why).to_contain_text("Limit per-customer for acme is on hold. It opens in 9 min")
    expect(why).to_contain_text("0 of 4 in use")


def test_a_blocked_job_shows_what_it_waits_for_and_what_failed_at_the_root(page: Page, site: Server) -> None:
    bad = site.add("fetch", max_retry=0)
    site.fail("fetch", message="no route")
    other = site.add("sum")
    between = site.add("join", depends=[bad, other])
    job = site.add("report", depends=[between])
    go(page, f"/ui/job/{job}")
    why = section(page, "Why it waits")
    expect(why).to_contain_text("1 job it waits for has failed or was cancelled.")
    expect(why).to_contain_text("no route")
    section(page, "What it waits for").get_by_role("link", name="join").click()
    expect(section(page, "What it waits for").locator(".node")).to_have_count(2)
    why.get_by_role("button", name="Retry it").click()
    expect(why).not_to_contain_text("has failed")
    assert site.job(bad)["status"] == "queued"
    section(page, "What it waits for").get_by_role("link", name="sum").click()
    expect(page).to_have_url(f"{site.url}/ui/job/{other}")


def test_a_scheduled_job_runs_now(page: Page, site: Server) -> None:
    job = site.add("mail", delay=5000)
    go(page, f"/ui/job/{job}")
    expect(section(page, "Why it waits")).to_contain_text("Its time has not come: it is due in 1 h 2")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_contain_text("queued")
    assert site.job(job)["status"] == "queued"


def test_transitions_are_followed_as_they_happen(page: Page, site: Server) -> None:
    job = site.add("mail", keep_result=True)
    go(page, f"/ui/job/{job}")
    expect(page.locator("h1")).to_contain_text("queued")
    [picked] = site.pick("mail")
    expect(page.locator("h1")).to_contain_text("running")
    note = {"jobs": [[picked["id"], picked["token"], {"progress": 0.4, "message": "half way"}]]}
    site.call("POST", "/worker/heartbeat", note, **{"worker-id": "hand"})
    expect(page.get_by_text("40 % · half way")).to_be_visible()
    site.finish(picked, result="fine")
    expect(page.locator("h1")).to_contain_text("done")
    expect(section(page, "Result")).to_contain_text("fine")


def test_retry_and_the_error_of_a_failed_job(page: Page, site: Server) -> None:
    job = site.add("mail", max_retry=0)
    site.fail("mail", message="mailbox full", error={"code": 452}, group="Full")
    go(page, f"/ui/job/{job}")
    expect(section(page, "Last failure")).to_contain_text("mailbox full")
    expect(section(page, "Last failure")).to_contain_text("code: 452")
    link = section(page, "Last failure").get_by_role("link", name="Full")
    expect(link).to_have_attribute("href", "/ui/jobs?group=Full")
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.get_by_text("It is in the queue again.")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("queued")


def test_cancel_kick_and_discard(page: Page, site: Server) -> None:
    job = site.add("mail")
    site.pick("mail")
    go(page, f"/ui/job/{job}")
    page.get_by_role("button", name="Take from worker…").click()
    dialog(page).get_by_role("button", name="Take from worker").click()
    expect(page.locator("h1")).to_contain_text("queued")
    page.get_by_role("button", name="Cancel…").click()
    dialog(page).get_by_role("button", name="Cancel: 1 job").click()
    expect(page.locator("h1")).to_contain_text("cancelled")
    page.get_by_role("button", name="Discard…").click()
    dialog(page).get_by_role("button", name="Discard: 1 job").click()
    expect(page).to_have_url(f"{site.url}/ui/jobs")
    assert site.session.get(f"{site.url}/job/{job}", timeout=60).status_code == 404


def test_priority_argument_and_tags_are_changed(page: Page, site: Server) -> None:
    job = site.add("mail", argument={"n": 1, "x": 1.0}, tags=["eu"])
    go(page, f"/ui/job/{job}")
    page.get_by_role("button", name="Change…").click()
    dialog(page).get_by_label("Argument").fill('{"n": ')
    dialog(page).get_by_role("button", name="Save").click()
    expect(dialog(page)).to_contain_text("not JSON: Unexpected end")
    dialog(page).get_by_label("Argument").fill('{"n": 2, "x": 1.0}')
    dialog(page).get_by_label("Priority").fill("-3")
    dialog(page).get_by_label("Tags").fill("eu, billing")
    dialog(page).get_by_role("button", name="Save").click()
    expect(section(page, "Argument")).to_contain_text("n: 2")
    found = site.job(job)
    assert (found["argument"], found["priority"], sorted(found["tags"])) == (
        {"n": 2, "x": 1.0},
        -3,
        ["billing", "eu"],
    )
    assert isinstance(found["argument"]["x"], float)


@pytest.mark.parametrize("state", ["failed", "done"])
def test_hostile_texts_are_only_text(page: Page, site: Server, state: str) -> None:
    spec = {
        "argument": {HOSTILE: [HOSTILE]},
        "tags": [HOSTILE],
        "unique": HOSTILE,
        "keep_result": True,
        "max_retry": 0,
    }
    job = site.add(HOSTILE, queue="q", **spec)
    if state == "failed":
        site.fail("q", message=HOSTILE, error=HOSTILE, group=HOSTILE)
    else:
        site.finish(site.pick("q")[0], result={HOSTILE: HOSTILE})
    go(page, f"/ui/job/{job}")
    expect(page.locator("h1")).to_contain_text("<img src=x onerror=")
    expect(section(page, "What happened")).to_contain_text("Enqueued")
    assert page.locator("main script, main img").count() == 0
    # The direction of the text is not turned round.
    expect(page.locator("h1")).to_contain_text("\\u202e ünï")


def test_a_traceback_is_shown_as_lines(page: Page, site: Server) -> None:
    job = site.add("mail", max_retry=0)
    site.fail("mail", error={"traceback": 'Traceback:\n  File "mail.py", line 3\nKeyError: 7\n'})
    go(page, f"/ui/job/{job}")
    lines = section(page, "Last failure").locator(".j-lines")
    expect(lines).to_have_text('Traceback:\n  File "mail.py", line 3\nKeyError: 7', use_inner_text=True)
    long = site.add("long", max_retry=0)
    site.fail("long", error={"type": "KeyError", "traceback": "\n".join(f"line {number}" for number in range(30))})
    go(page, f"/ui/job/{long}")
    failure = section(page, "Last failure")
    expect(failure).to_contain_text("line 29")
    expect(failure).not_to_contain_text("line 17")
    failure.get_by_role("button", name="Show 18 lines before").click()
    expect(failure).to_contain_text("line 0")
