"""The web UI: every page, in light, dark and narrow; the frame around them; hostile names; many jobs."""

from __future__ import annotations

import gzip
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import expect

from ui_support import HOSTILE, Server, Ui


@pytest.fixture(scope="module", autouse=True)
def data(server: Server) -> None:
    """Something of everything, all of it with a hostile name as well."""
    # Workers do nothing here, and are to be seen until the last test is over.
    server.call("POST", "/config", {"set": {"worker_ttl": 3600}})
    server.enqueue("mail", 5, argument={"to": "at"})
    server.enqueue("mail", 5, argument={"to": "de"})
    server.enqueue(HOSTILE, 3, tags=[HOSTILE], argument=HOSTILE)
    for identifier, by in ((HOSTILE, None), ("keyed", "argument.to")):
        body = {"match": {"queue": "mail"}, "concurrency": 2, **({"by": by} if by else {})}
        server.call("PUT", f"/constraint/{quote(identifier, safe='')}", body)
    for identifier in (HOSTILE, "report"):
        body = {"every": 3600, "job": {"name": identifier}, "argument": HOSTILE}
        server.call("POST", f"/schedule/{quote(identifier, safe='')}", body)
    for name in (HOSTILE, "plain"):
        server.call("POST", "/worker", {"name": name, "queues": [HOSTILE, "mail"]})
    for number, job in enumerate(server.pick("mail", count=4)):
        if number:
            outcome = {"type": "failure", "reason": "other", "message": HOSTILE, "should_retry": number > 1}
            server.finish(job, **({} if number == 3 else {**outcome, "group": HOSTILE}))


@pytest.mark.parametrize("path", ["/queues", "/limits", "/schedules", "/workers", "/"])
def test_a_hostile_name_is_text(ui: Ui, path: str) -> None:
    ui.go(path)
    expect(ui.page.locator("tbody").get_by_text(HOSTILE).first).to_be_visible()


def test_what_is_not_there_is_said(ui: Ui) -> None:
    ui.refusals = 1
    ui.go("/queue/nowhere", "Not found")
    expect(ui.page.locator("main p").first).to_have_text("No such queue: nowhere")
    ui.go("/nowhere", "No such page")


def test_the_policy_forbids_what_is_not_ours(server: Server) -> None:
    for path in ("/ui/", "/ui/queues", "/ui/static/app.js"):
        answer = requests.get(server.url + path, timeout=60)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_files_are_packed_and_asked_for_once(server: Server) -> None:
    index = requests.get(f"{server.url}/ui/", timeout=60)
    assert index.headers["cache-control"] == "no-cache"
    folder = server.url + index.text.partition('src="')[2].partition("/app.js")[0]
    url = f"{folder}/app.js"
    first = requests.get(url, headers={"accept-encoding": "gzip"}, stream=True, timeout=60)
    assert "max-age=31536000" in first.headers["cache-control"]
    packed = first.raw.read(decode_content=False)
    plain = requests.get(url, headers={"accept-encoding": "identity"}, timeout=60)
    assert gzip.decompress(packed) == plain.content
    assert requests.get(f"{folder}/..%2f..%2fhttp%2fui.py", timeout=60).status_code == 404
    assert requests.get(f"{folder}/nothing.js", timeout=60).status_code == 404


# -- the frame ----------------------------------------------------------------------------------------


def test_the_keyboard_leads_everywhere(ui: Ui) -> None:
    ui.go("/queues", "Queues")
    keyboard = ui.page.keyboard
    expect(ui.row("mail")).to_be_visible()
    keyboard.press("/")
    expect(ui.page.get_by_label("Filter by name")).to_be_focused()
    keyboard.type("?")
    expect(ui.dialog).to_have_count(0)
    keyboard.press("Escape")
    keyboard.press("?")
    expect(ui.dialog).to_contain_text("to the filter")
    keyboard.press("Escape")
    expect(ui.dialog).to_have_count(0)
    keyboard.press("g")
    keyboard.press("w")
    expect(ui.page.locator("h1")).to_have_text("Workers")


def test_the_colours_chosen_are_kept(new_ui: Ui) -> None:
    ui = new_ui
    ui.go("/workers", "Workers")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = ui.page.evaluate(ground)
    ui.page.locator("#theme").click()
    ui.page.locator("#theme").click()
    assert ui.page.evaluate(ground) != before
    ui.page.reload()
    expect(ui.page.locator("#theme")).to_have_attribute("aria-label", "Theme: dark")
    assert ui.page.evaluate(ground) != before


def test_the_menu_of_a_narrow_screen(new_ui: Ui) -> None:
    ui = new_ui
    ui.page.set_viewport_size({"width": 360, "height": 700})
    ui.go("/", "Overview")
    expect(ui.page.get_by_role("link", name="Schedules")).to_be_hidden()
    ui.button("Menu").click()
    ui.page.get_by_role("link", name="Schedules").click()
    expect(ui.page.locator("h1")).to_have_text("Schedules")


# -- the overview -------------------------------------------------------------------------------------


def test_the_overview_rests_while_its_tab_is_hidden(new_ui: Ui) -> None:
    ui = new_ui
    hide = """is => {
        Object.defineProperty(document, 'hidden', {value: is, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    ui.go("/", "Overview")
    expect(ui.page.locator("#live")).to_have_text("Live")
    ui.page.evaluate(hide, True)
    ui.page.wait_for_timeout(1000)  # what was asked before is answered
    asked: list[str] = []
    ui.page.on("request", lambda request: asked.append(request.url))
    ui.page.wait_for_timeout(5000)
    assert not [url for url in asked if "/queues" in url]
    with ui.page.expect_request("**/queues?*"):
        ui.page.evaluate(hide, False)
