"""The web UI: everything that can be done with queues and constraints."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import expect

from ui_support import HOSTILE, Ui


def quoted(name: str) -> str:
    return quote(name, safe="")


# -- queues -------------------------------------------------------------------------------------------


def test_what_is_refused_is_said_at_the_field(ui: Ui) -> None:
    ui.refusals = 1
    ui.server.enqueue("limited")
    ui.go("/queue/limited", "limited")
    ui.button("Max waiting").click()
    field = ui.dialog.get_by_label("Waiting jobs")
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
    ui.told("Servers discard them now")
    expect(ui.page.locator(".tile").nth(1)).to_contain_text("0", timeout=30_000)
    expect(ui.page.get_by_text("No job is ready to start.")).to_be_visible(timeout=30_000)
    assert ui.server.queue("purged")["queued"] == 0


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
    ui.go("/limits", "Limits")
    ui.button("New limit").click()
    ui.dialog.get_by_label("Name").fill(HOSTILE)
    ui.dialog.get_by_label("Which jobs").fill('{"queue": "made"}')
    ui.dialog.get_by_label("At once").fill("2")
    ui.dialog.get_by_label("Starts", exact=True).fill("100")
    ui.dialog.get_by_label("Period").fill("60")
    ui.dialog.get_by_label("A limit for each value of").fill("argument.a\nargument.b")
    ui.dialog.get_by_role("button", name="Create").click()
    expect(ui.row(HOSTILE)).to_contain_text("2 at once, 100 in 1 min")
    made = ui.server.get(f"/constraints?ids={quoted(HOSTILE)}")["constraints"][0]
    assert made["by"] == ["argument.a", "argument.b"] and made["rate"] == {"limit": 100, "period": 60}
    ui.button(f"Change {HOSTILE}").click()
    ui.dialog.get_by_label("At once").fill("7")
    ui.dialog.get_by_role("button", name="Replace").click()
    expect(ui.row(HOSTILE)).to_contain_text("7 at once")
    assert ui.server.get(f"/constraints?ids={quoted(HOSTILE)}")["constraints"][0]["by"] == ["argument.a", "argument.b"]
    ui.button(f"Delete {HOSTILE}").click()
    ui.dialog.get_by_role("button", name="Delete").click()
    expect(ui.row(HOSTILE)).to_have_count(0)


def test_what_a_constraint_holds_is_shown_and_a_key_put_on_hold(ui: Ui) -> None:
    body = {"match": {"queue": "keyed"}, "by": "argument.to", "concurrency": 1}
    ui.server.call("PUT", "/constraint/keyed", body)
    ui.server.enqueue("keyed", 4, argument={"to": "at"})
    ui.server.pick("keyed", count=4)
    ui.go("/limit/keyed", "keyed")
    row = ui.row("at")
    expect(row).to_contain_text("1 of 1")
    expect(row.locator("td.number").first).to_have_text("3")
    ui.button("Hold at").click()
    ui.dialog.get_by_label("For").fill("900")
    ui.dialog.get_by_role("button", name="Hold").click()
    expect(row).to_contain_text("on hold opens in")
    ui.go("/limits", "Limits")
    expect(ui.row("keyed")).to_contain_text("at 3 held")
    expect(ui.row("keyed").locator("td").nth(4)).to_have_text("1 of 1")
    ui.go("/limit/keyed", "keyed")
    ui.button("Hold at").click()
    ui.dialog.get_by_label("For").fill("0")
    ui.dialog.get_by_role("button", name="Hold").click()
    expect(row).not_to_contain_text("opens in")


def test_a_rate_that_is_used_up_is_not_on_hold(ui: Ui) -> None:
    body = {"match": {"queue": "rated"}, "rate": {"limit": 2, "period": 600}}
    ui.server.call("PUT", "/constraint/rated", body)
    ui.server.enqueue("rated", 4)
    ui.server.pick("rated", count=4)
    for path in ("/limits", "/limit/rated"):
        ui.go(path)
        row = ui.row("2 of 2 starts")
        expect(row).to_contain_text("its rate has room in 9 min")
        expect(row).not_to_contain_text("on hold")


def new_constraint(ui: Ui, name: str, **fields: str) -> None:
    ui.go("/limits", "Limits")
    ui.button("New limit").click()
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
    assert ui.server.get("/constraints?ids=taken")["constraints"][0]["concurrency"] == 5
    ui.dialog.get_by_role("button", name="Create").click()
    ui.dialog.last.get_by_role("button", name="Replace it").click()
    expect(ui.dialog).to_have_count(0)
    assert ui.server.get("/constraints?ids=taken")["constraints"][0]["concurrency"] == 9


def test_errors_of_a_constraint_go_by_what_its_fields_are_called(ui: Ui) -> None:
    ui.refusals = 4
    new_constraint(ui, "errors")
    problem = ui.dialog.locator(".field .problem:visible")
    expect(problem).to_contain_text("how many may run at once")
    ui.dialog.get_by_label("At once").fill("0")
    create = ui.dialog.get_by_role("button", name="Create")
    create.click()
    expect(problem).to_have_text(re.compile("^expected an integer"))
    ui.dialog.get_by_label("At once").fill("1")
    ui.dialog.get_by_label("A limit for each value of").fill("argument.a\ncustomer")
    create.click()
    expect(problem).to_have_text(re.compile("^no. 2: expected a path"))


def test_a_dry_run_says_which_jobs_a_limit_meets(ui: Ui) -> None:
    ui.refusals = 1  # there is none of this name yet
    ui.server.enqueue("dry", 3, argument={"to": "at"})
    ui.server.enqueue("dry", 1, argument={"for": "de"})
    new_constraint(ui, "dry", At_once="1", Which_jobs='{"queue": "dry"}', A_limit_for_each_value_of="argument.to")
    expect(ui.row("dry")).to_be_visible()
    ui.button("Change dry").click()
    ui.dialog.get_by_role("button", name="Dry run").click()
    expect(ui.dialog).to_contain_text("match, under 2 keys. argument.to leads nowhere in 1 of them.")
    expect(ui.dialog).to_contain_text("4 jobs of")


def test_the_buttons_of_a_long_form_are_always_in_sight(ui: Ui) -> None:
    for size in ((1280, 900), (1280, 500), (360, 500)):
        ui.page.set_viewport_size({"width": size[0], "height": size[1]})
        ui.go("/limits", "Limits")
        ui.button("New limit").click()
        expect(ui.dialog.get_by_role("button", name="Create")).to_be_in_viewport(ratio=1)
        ui.fits()
