"""The web UI: schedules and workers, what can be undone, and dialogs that destroy nothing by mistake."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import expect

from ui_support import HOSTILE, Ui


def quoted(name: str) -> str:
    return quote(name, safe="")


# -- schedules ----------------------------------------------------------------------------------------


def test_a_schedule_is_made_paused_changed_and_deleted(ui: Ui) -> None:
    ui.go("/schedules", "Schedules")
    ui.button("New schedule").click()
    ui.dialog.get_by_label("Name", exact=True).fill(HOSTILE)
    ui.dialog.get_by_label("Cron", exact=True).fill("15 3 * * *")
    ui.dialog.get_by_label("Job", exact=True).fill('{"name": "nightly"}')
    ui.dialog.get_by_label("Argument").fill('{"big": 9007199254740993}')
    ui.dialog.get_by_role("button", name="Create").click()
    expect(ui.row(HOSTILE)).to_contain_text("then")
    ui.row(HOSTILE).get_by_role("link", name=HOSTILE, exact=True).click()
    expect(ui.page.locator("h1")).to_contain_text(HOSTILE)
    expect(ui.page.get_by_role("region", name="Next").get_by_role("listitem")).to_have_count(10)
    ui.page.go_back()
    ui.button(f"Run now: {HOSTILE}").click()
    ui.told("runs now: job")
    made = ui.server.get(f"/schedules?ids={quoted(HOSTILE)}&runs=20")["schedules"][0]["runs"][0]["id"]
    expect(ui.row(HOSTILE).get_by_role("link", name=f"Job {made}: queued")).to_be_visible()
    schedules = f"/schedules?ids={quoted(HOSTILE)}"
    assert ui.server.get(schedules)["schedules"][0]["argument"] == {"big": 9007199254740993}
    ui.button(f"Pause {HOSTILE}").click()
    expect(ui.row(HOSTILE)).to_contain_text("paused")
    assert ui.server.get(schedules)["schedules"][0]["argument"] == {"big": 9007199254740993}
    ui.button(f"Resume {HOSTILE}").click()
    expect(ui.button(f"Pause {HOSTILE}")).to_be_visible()
    ui.button(f"Change {HOSTILE}").click()
    ui.dialog.get_by_label("Cron", exact=True).fill("@hourly")
    ui.dialog.get_by_role("button", name="Replace").click()
    expect(ui.row(HOSTILE)).to_contain_text("@hourly")
    ui.button(f"Delete {HOSTILE}").click()
    ui.dialog.get_by_role("button", name="Delete").click()
    expect(ui.row(HOSTILE)).to_have_count(0)


# -- workers ------------------------------------------------------------------------------------------


def test_a_worker_is_quiet_goes_on_and_stops(ui: Ui) -> None:
    body = {"name": HOSTILE, "queues": ["worked"]}
    worker = ui.server.call("POST", "/worker", body)["worker_id"]
    [job_id] = ui.server.enqueue("worked")
    jobs = [[job["id"], job["token"]] for job in ui.server.pick("worked", worker)]
    ui.server.call("POST", "/worker/heartbeat", {"jobs": jobs}, **{"worker-id": worker})
    ui.go("/workers", "Workers")
    expect(ui.row(worker).locator(f'a[href*="{job_id}"]')).to_be_visible()
    ui.row(worker).get_by_role("button", name="Quiet").click()
    expect(ui.row(worker)).to_contain_text("quiet")
    ui.row(worker).get_by_role("button", name="Resume").click()
    expect(ui.row(worker)).to_contain_text("pulling")
    ui.row(worker).get_by_role("button", name="Stop").click()
    ui.dialog.get_by_role("button", name="Stop").click()
    ui.told("was asked to stop")
    found = [one for one in ui.server.get("/workers")["workers"] if one["id"] == worker]
    assert found[0]["request"] == "stop"


def test_a_workers_jobs_are_taken_in_three_clicks(ui: Ui) -> None:
    server = ui.server
    server.enqueue("quick", 30)
    for job in server.pick("quick", count=30):
        server.finish(job)
    ids = server.enqueue("quick", 2)
    running = [job["id"] for job in server.pick("quick", "mail-1", count=2)]
    about = {"host": "web-3", "pid": 4711, "version": "shop 7", "knows": ["quick", "slow"]}
    body = {"name": "mail-1", "queues": ["quick"], "max_jobs": 4, "announce": True, "running": running, **about}
    server.call("POST", "/worker", body)
    ui.go("/", "Overview")
    ui.page.get_by_role("link", name="Workers", exact=True).click()
    expect(ui.page.locator("h1")).to_have_text("Workers")
    row = ui.row("mail-1")
    for text in ("web-3 · 4711", "shop 7", "2 of 4", "pulling"):
        expect(row).to_contain_text(text)
    row.get_by_role("button", name="Take jobs from mail-1").click()
    expect(ui.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    ui.dialog.get_by_role("button", name="Take jobs").click()
    ui.told("2 jobs wait again.")
    assert {server.get(f"/job/{one}")["status"] for one in ids} == {"queued"}


def test_all_columns_of_workers_fit_a_tablet(ui: Ui) -> None:
    name = "invoices.outgoing-to-customers_in_arrears"
    ui.server.enqueue(name, 5)
    jobs = [job["id"] for job in ui.server.pick(name, f"{name}-7", count=5)]
    about = {"host": "invoices-7.eu-central.internal.example", "pid": 4711, "version": "shop 7.12.1", "max_jobs": 8}
    body = {"name": f"{name}-7", "queues": [name, "others*"], "announce": True, "running": jobs, **about}
    ui.server.call("POST", "/worker", body)
    for width in (1024, 1440):
        ui.page.set_viewport_size({"width": width, "height": 900})
        ui.go("/workers", "Workers")
        expect(ui.row(f"{name}-7").get_by_role("link", name="2 more")).to_be_visible()
        ui.columns_fit()


# -- what is done can be taken back, and nothing destroys by mistake ---------------------------------


def test_what_was_done_is_undone_by_button_and_by_key(ui: Ui) -> None:
    ui.server.call("POST", "/schedule/again", {"every": 3600, "job": {"name": "undone"}})
    ui.go("/schedules", "Schedules")
    for undo in ("button", "key"):
        ui.button("Pause again").click()
        ui.told("again is paused.")
        expect(ui.row("again")).to_contain_text("paused")
        if undo == "button":
            ui.button("Undo").focus()
            ui.page.keyboard.press("Enter")
        else:
            ui.page.keyboard.press("Control+z")
        ui.told("Undone.")
        expect(ui.button("Pause again")).to_be_visible()
        assert not ui.server.get("/schedules?ids=again")["schedules"][0].get("paused")
        expect(ui.button("Undo")).to_have_count(0)
        ui.button("Close").first.click()
        expect(ui.page.locator(".toast")).to_have_count(0)


def test_no_dialog_has_what_destroys_in_focus_or_on_enter(ui: Ui) -> None:
    ui.server.call("POST", "/schedule/safe", {"every": 3600, "job": {"name": "safe"}})
    ui.server.enqueue("unpurged", 2)
    ui.go("/schedules", "Schedules")
    ui.button("Delete safe").click()
    expect(ui.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    ui.page.keyboard.press("Enter")
    expect(ui.dialog).to_have_count(0)
    ui.go("/queue/unpurged", "unpurged")
    ui.button("Discard jobs").click()
    ui.dialog.get_by_label("To confirm").fill("unpurged")
    ui.page.keyboard.press("Enter")
    expect(ui.dialog).to_be_visible()
    assert ui.server.queue("unpurged")["queued"] == 2
    assert ui.server.get("/schedules?ids=safe")["schedules"][0]["id"] == "safe"
