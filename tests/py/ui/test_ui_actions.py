"""The web UI: everything that can be done with queues, constraints, schedules and workers."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import expect

from ui_support import HOSTILE, Server, Ui, browser, server, ui  # noqa: F401 (fixtures)


def quoted(name: str) -> str:
    return quote(name, safe="")


# -- queues -------------------------------------------------------------------------------------------


def test_a_queue_is_paused_and_goes_on(ui: Ui) -> None:
    ui.server.enqueue(HOSTILE)
    ui.go(f"/queue/{quoted(HOSTILE)}", HOSTILE)
    ui.button("Pause").click()
    expect(ui.button("Resume")).to_be_visible()
    assert ui.server.queue(HOSTILE)["paused"] is True
    ui.button("Resume").click()
    expect(ui.button("Pause")).to_be_visible()
    assert ui.server.queue(HOSTILE)["paused"] is False


def test_a_queue_is_paused_in_the_list(ui: Ui) -> None:
    ui.server.enqueue("listed")
    ui.go("/queues?name=listed")
    ui.button("Pause listed").click()
    expect(ui.row("listed")).to_contain_text("paused")
    assert ui.server.queue("listed")["paused"] is True


def test_a_limit_is_set(ui: Ui) -> None:
    ui.server.enqueue("limited")
    ui.go("/queue/limited", "limited")
    ui.button("Limit").click()
    ui.dialog.get_by_label("Jobs that wait").fill("50")
    ui.dialog.get_by_role("button", name="Save").click()
    expect(ui.page.locator(".facts")).to_contain_text("1 of 50")
    assert ui.server.queue("limited")["max_waiting"] == 50


def test_what_is_refused_is_said_at_the_field(ui: Ui) -> None:
    ui.refusals = 1
    ui.server.enqueue("limited")
    ui.go("/queue/limited", "limited")
    ui.button("Limit").click()
    field = ui.dialog.get_by_label("Jobs that wait")
    field.fill("many")
    ui.dialog.get_by_role("button", name="Save").click()
    expect(ui.dialog.locator(".field .problem")).to_contain_text("not a number")
    field.fill("-3")
    ui.dialog.get_by_role("button", name="Save").click()
    expect(ui.dialog.locator(".field .problem")).to_have_text(re.compile("^expected an integer"))
    expect(field).to_be_focused()


def test_settings_of_its_own(ui: Ui) -> None:
    ui.server.enqueue("own")
    ui.go("/queue/own", "own")
    ui.button("Settings").click()
    ui.dialog.get_by_label("done_ttl").fill("600")
    ui.dialog.get_by_role("button", name="Save").click()
    expect(ui.page.locator(".facts")).to_contain_text("done_ttl 600")
    ui.button("Settings").click()
    ui.dialog.get_by_label("done_ttl").fill("")
    ui.dialog.get_by_role("button", name="Save").click()
    expect(ui.page.locator(".facts")).not_to_contain_text("done_ttl")
    assert not ui.server.queue("own").get("settings")


def test_jobs_are_discarded_once_the_name_was_typed(ui: Ui) -> None:
    ui.server.enqueue("purged", 1500)
    ui.go("/queue/purged", "purged")
    ui.button("Discard jobs").click()
    expect(ui.dialog).to_contain_text("All that wait (1,500)")
    ui.dialog.get_by_label("To confirm").fill("purge")
    ui.dialog.get_by_role("button", name="Discard").click()
    expect(ui.dialog.locator(".field .problem").last).to_contain_text("not its name")
    ui.dialog.get_by_label("To confirm").fill("purged")
    ui.dialog.get_by_role("button", name="Discard").click()
    ui.told("1,500 jobs were discarded")
    assert ui.server.queue("purged")["queued"] == 0


def test_running_jobs_are_taken_back(ui: Ui) -> None:
    ui.server.enqueue("kicked", 3)
    ui.server.pick("kicked", count=3)
    ui.go("/queue/kicked", "kicked")
    ui.button("Take back").click()
    ui.dialog.get_by_role("button", name="Take back").click()
    ui.told("3 jobs were taken back")
    assert ui.server.queue("kicked")["queued"] == 3


def test_an_empty_queue_is_forgotten_and_one_with_jobs_is_not(ui: Ui) -> None:
    ui.refusals = 1
    ui.server.enqueue("kept")
    ui.go("/queue/kept", "kept")
    ui.button("Forget").click()
    ui.dialog.get_by_role("button", name="Forget").click()
    expect(ui.page.get_by_role("alert").filter(has_text="kept")).to_be_visible()
    ui.server.call("POST", "/queue/gone", {"max_waiting": 5})
    ui.go("/queue/gone", "gone")
    ui.button("Forget").click()
    ui.dialog.get_by_role("button", name="Cancel").click()
    ui.button("Forget").click()
    ui.dialog.get_by_role("button", name="Forget").click()
    expect(ui.page.locator("h1")).to_have_text("Queues")
    assert "gone" not in [queue["name"] for queue in ui.server.get("/queues")["queues"]]


# -- constraints --------------------------------------------------------------------------------------


def test_a_constraint_is_made_changed_and_deleted(ui: Ui) -> None:
    ui.refusals = 1  # there is none of this name yet
    ui.go("/constraints", "Constraints")
    ui.button("New constraint").click()
    ui.dialog.get_by_label("Name").fill(HOSTILE)
    ui.dialog.get_by_label("Which jobs").fill('{"queue": "made"}')
    ui.dialog.get_by_label("At once").fill("2")
    ui.dialog.get_by_label("Starts", exact=True).fill("100")
    ui.dialog.get_by_label("Period").fill("60")
    ui.dialog.get_by_label("A limit for each value of").fill("argument.a\nargument.b")
    ui.dialog.get_by_role("button", name="Create").click()
    expect(ui.row(HOSTILE)).to_contain_text("2 at once, 100 in 1 min")
    made = ui.server.get(f"/constraint/{quoted(HOSTILE)}")
    assert made["by"] == ["argument.a", "argument.b"] and made["rate"] == {"limit": 100, "period": 60}
    ui.button(f"Change {HOSTILE}").click()
    ui.dialog.get_by_label("At once").fill("7")
    ui.dialog.get_by_role("button", name="Replace").click()
    expect(ui.row(HOSTILE)).to_contain_text("7 at once")
    assert ui.server.get(f"/constraint/{quoted(HOSTILE)}")["by"] == ["argument.a", "argument.b"]
    ui.button(f"Delete {HOSTILE}").click()
    ui.dialog.get_by_role("button", name="Delete").click()
    expect(ui.row(HOSTILE)).to_have_count(0)


def test_a_matcher_that_is_wrong_is_said_at_its_field(ui: Ui) -> None:
    ui.refusals = 2  # there is none of this name, either
    ui.go("/constraints", "Constraints")
    ui.button("New constraint").click()
    ui.dialog.get_by_label("Name").fill("wrong")
    ui.dialog.get_by_label("At once").fill("2")
    ui.dialog.get_by_label("Which jobs").fill("{")
    ui.dialog.get_by_role("button", name="Create").click()
    expect(ui.dialog.locator(".field .problem:visible")).to_contain_text("not JSON")
    ui.dialog.get_by_label("Which jobs").fill('{"colour": "red"}')
    ui.dialog.get_by_role("button", name="Create").click()
    expect(ui.dialog.locator(".field .problem:visible")).to_have_text(re.compile("^colour: unknown field"))


def test_what_a_constraint_holds_is_shown_and_a_key_put_on_hold(ui: Ui) -> None:
    body = {"match": {"queue": "keyed"}, "by": "argument.to", "concurrency": 1}
    ui.server.call("PUT", "/constraint/keyed", body)
    ui.server.enqueue("keyed", 4, argument={"to": "at"})
    ui.server.pick("keyed", count=4)
    ui.go("/constraint/keyed", "keyed")
    row = ui.row("at")
    expect(row).to_contain_text("1 of 1")
    expect(row.locator("td.number").first).to_have_text("3")
    ui.button("Hold at").click()
    ui.dialog.get_by_label("For").fill("900")
    ui.dialog.get_by_role("button", name="Hold").click()
    expect(row).to_contain_text("on hold opens in")
    ui.go("/constraints", "Constraints")
    expect(ui.row("keyed").locator("td").nth(6)).to_have_text("by key")
    ui.go("/constraint/keyed", "keyed")
    ui.button("Open at").click()
    expect(row).not_to_contain_text("opens in")


def test_a_rate_that_is_used_up_is_not_on_hold(ui: Ui) -> None:
    body = {"match": {"queue": "rated"}, "rate": {"limit": 2, "period": 600}}
    ui.server.call("PUT", "/constraint/rated", body)
    ui.server.enqueue("rated", 4)
    ui.server.pick("rated", count=4)
    for path in ("/constraints", "/constraint/rated"):
        ui.go(path)
        row = ui.row("2 of 2 starts")
        expect(row).to_contain_text("its rate has room in 9 min")
        expect(row).not_to_contain_text("on hold")
        expect(row.get_by_role("button", name=re.compile("^Open"))).to_have_count(0)


def test_a_constraint_on_hold_is_opened_in_the_list(ui: Ui) -> None:
    ui.server.call("PUT", "/constraint/shut", {"match": {"queue": "shut"}, "concurrency": 2})
    ui.go("/constraints", "Constraints")
    ui.button("Hold shut").click()
    ui.dialog.get_by_role("button", name="Hold").click()
    ui.told("shut is on hold.")
    expect(ui.row("shut")).to_contain_text("on hold opens in")
    ui.button("Open shut").click()
    ui.told("shut is not on hold any more.")
    expect(ui.row("shut")).not_to_contain_text("on hold")


def new_constraint(ui: Ui, name: str, **fields: str) -> None:
    ui.go("/constraints", "Constraints")
    ui.button("New constraint").click()
    expect(ui.dialog.get_by_label("Which jobs")).to_have_value("")
    ui.dialog.get_by_label("Name").fill(name)
    ui.dialog.get_by_label("Which jobs").fill('{"queue": "taken"}')
    for label, text in fields.items():
        ui.dialog.get_by_label(label.replace("_", " "), exact=True).fill(text)
    ui.dialog.get_by_role("button", name="Create").click()


def test_a_name_that_is_taken_is_replaced_only_when_that_is_meant(ui: Ui) -> None:
    ui.server.call("PUT", "/constraint/taken", {"match": {"queue": "taken"}, "concurrency": 5})
    new_constraint(ui, "taken", At_once="9")
    expect(ui.dialog.last).to_contain_text("taken exists already")
    expect(ui.dialog.last).to_contain_text("It says: 5 at once")
    ui.dialog.last.get_by_role("button", name="Cancel").click()
    expect(ui.dialog.locator(".field .problem:visible")).to_have_text("This name is taken.")
    assert ui.server.get("/constraint/taken")["concurrency"] == 5
    ui.dialog.get_by_role("button", name="Create").click()
    ui.dialog.last.get_by_role("button", name="Replace it").click()
    expect(ui.dialog).to_have_count(0)
    assert ui.server.get("/constraint/taken")["concurrency"] == 9


def test_errors_of_a_constraint_go_by_what_its_fields_are_called(ui: Ui) -> None:
    ui.refusals = 4
    new_constraint(ui, "errors")
    problem = ui.dialog.locator(".field .problem:visible")
    expect(problem).to_contain_text("how many may run at once")
    ui.dialog.get_by_label("Starts spread evenly").check()
    ui.dialog.get_by_label("At once").fill("0")
    create = ui.dialog.get_by_role("button", name="Create")
    create.click()
    expect(problem).to_contain_text("To spread starts")
    ui.dialog.get_by_label("Starts spread evenly").uncheck()
    create.click()
    expect(problem).to_have_text(re.compile("^expected an integer"))
    ui.dialog.get_by_label("At once").fill("2")
    ui.dialog.get_by_label("Order").select_option("strict")
    create.click()
    expect(problem).to_have_text("Strict order needs 1 at once.")
    ui.dialog.get_by_label("At once").fill("1")
    ui.dialog.get_by_label("A limit for each value of").fill("argument.a\ncustomer")
    create.click()
    expect(problem).to_have_text(re.compile("^no. 2: expected a path"))


def test_the_buttons_of_a_long_form_are_always_in_sight(ui: Ui) -> None:
    for size in ((1280, 900), (1280, 500), (360, 500)):
        ui.page.set_viewport_size({"width": size[0], "height": size[1]})
        ui.go("/constraints", "Constraints")
        ui.button("New constraint").click()
        expect(ui.dialog.get_by_role("button", name="Create")).to_be_in_viewport(ratio=1)
        ui.fits()


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
    expect(ui.row(HOSTILE)).to_contain_text("every day at 3:15")
    ui.button(f"Run {HOSTILE} now").click()
    ui.told("runs now: job")
    made = ui.server.get(f"/schedule/{quoted(HOSTILE)}?runs=20")["runs"][0]["id"]
    expect(ui.row(HOSTILE).get_by_role("link", name=f"Job {made}: queued")).to_be_visible()
    schedule = f"/schedule/{quoted(HOSTILE)}"
    assert ui.server.get(schedule)["argument"] == {"big": 9007199254740993}
    ui.button(f"Pause {HOSTILE}").click()
    expect(ui.row(HOSTILE)).to_contain_text("paused")
    assert ui.server.get(schedule)["argument"] == {"big": 9007199254740993}
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
    ui.server.pick("worked", worker)
    ui.go("/workers", "Workers")
    expect(ui.row(worker)).to_contain_text(job_id)
    ui.row(worker).get_by_role("button", name="Quiet").click()
    expect(ui.row(worker)).to_contain_text("quiet")
    ui.row(worker).get_by_role("button", name="Resume").click()
    expect(ui.row(worker)).to_contain_text("pulling")
    ui.row(worker).get_by_role("button", name="Stop").click()
    ui.dialog.get_by_role("button", name="Stop").click()
    ui.told("was asked to stop")
    found = [one for one in ui.server.get("/workers")["workers"] if one["id"] == worker]
    assert found[0]["request"] == "stop"


def test_a_stuck_workers_jobs_are_taken_in_three_clicks(ui: Ui) -> None:
    server = ui.server
    server.enqueue("quick", 30)
    for job in server.pick("quick", count=30):
        server.finish(job)
    ids = server.enqueue("quick", 2)
    running = [job["id"] for job in server.pick("quick", "mail-1", count=2)]
    about = {"host": "web-3", "pid": 4711, "version": "shop 7", "knows": ["quick", "slow"]}
    body = {"name": "mail-1", "queues": ["quick"], "max_jobs": 4, "announce": True, "running": running, **about}
    server.call("POST", "/worker", body)
    # Later by the clock of the page: what runs has taken long since.
    ui.page.clock.install()
    ui.go("/", "Overview")
    ui.page.get_by_role("link", name="Workers", exact=True).click()
    expect(ui.page.locator("h1")).to_have_text("Workers")
    row = ui.row("mail-1")
    for text in ("web-3 · 4711", "shop 7", "2 of 4", "pulling"):
        expect(row).to_contain_text(text)
    ui.page.clock.fast_forward("02:00")
    expect(row).to_contain_text(re.compile(r"[\d,]+ × its usual p9[59]"))
    row.get_by_role("button", name="Take jobs from mail-1").click()
    expect(ui.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    ui.dialog.get_by_role("button", name="Take 2 jobs").click()
    ui.told("2 jobs of mail-1 wait again.")
    assert {server.get(f"/job/{one}")["status"] for one in ids} == {"queued"}


def test_a_page_for_each_worker_also_for_those_listed_nowhere(ui: Ui) -> None:
    server = ui.server
    name = HOSTILE.encode("ascii", "ignore").decode().strip()  # it goes into a header
    ui.refusals = 1
    [first, second] = server.enqueue("pulled", 2)
    server.pick("pulled", name, count=2)
    ui.go("/workers", "Workers")
    others = ui.page.get_by_role("region", name="Not listed")
    expect(others).to_contain_text("runs 2 jobs of pulled")
    others.get_by_role("link").first.click()
    expect(ui.page.locator("h1")).to_contain_text("onerror")
    expect(ui.page.get_by_text("It is not listed")).to_be_visible()
    ui.button(f"Take back {first}").click()
    ui.told(f"{first} waits again.")
    expect(ui.row(first)).to_have_count(0)
    about = {"host": "h", "pid": 1, "version": "1", "knows": ["pulled"]}
    server.call(
        "POST", "/worker", {"name": name, "queues": ["pulled", "p*"], "announce": True, "running": [second], **about}
    )
    ui.page.reload()
    facts = ui.page.locator(".facts")
    expect(facts).to_contain_text("h · process 1")
    expect(ui.row(second)).to_contain_text("pulled")
    ui.button(f"Take jobs from {name}").click()
    ui.dialog.get_by_role("button", name="Take 1 job").click()
    expect(ui.page.get_by_text("It runs nothing now.")).to_be_visible()
    assert server.get(f"/job/{second}")["status"] == "queued"
    ui.fits()


# -- what is done can be taken back, and nothing destroys by mistake ---------------------------------


def test_what_was_done_is_undone_by_button_and_by_key(ui: Ui) -> None:
    ui.server.call("PUT", "/schedule/again", {"every": 3600, "job": {"name": "undone"}})
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
        assert not ui.server.get("/schedule/again").get("paused")
        expect(ui.button("Undo")).to_have_count(0)
        ui.button("Close").first.click()
        expect(ui.page.locator(".toast")).to_have_count(0)


def test_no_dialog_has_what_destroys_in_focus_or_on_enter(ui: Ui) -> None:
    ui.server.call("PUT", "/schedule/safe", {"every": 3600, "job": {"name": "safe"}})
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
    assert ui.server.get("/schedule/safe")["id"] == "safe"
