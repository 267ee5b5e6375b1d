"""The web UI: every page, in light, dark and narrow; the frame around them; hostile names; many jobs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from urllib.parse import quote, unquote

import pytest
import requests
from playwright.sync_api import Browser, expect

from ui_support import HOSTILE, Server, Ui, browser, new_ui, server, tab, ui  # noqa: F401 (fixtures)

PAGES = {
    "/": "Overview",
    "/queues": "Queues",
    f"/queue/{quote(HOSTILE, safe='')}": HOSTILE,
    "/queue/mail": "mail",
    "/constraints": "Constraints",
    f"/constraint/{quote(HOSTILE, safe='')}": HOSTILE,
    "/constraint/keyed": "keyed",
    "/schedules": "Schedules",
    "/workers": "Workers",
}
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "narrow": ("light", 360)}


@pytest.fixture(scope="module", autouse=True)
def data(server: Server) -> None:
    """Something of everything, all of it with a hostile name as well."""
    # Workers do nothing here, and are to be seen until the last test is over.
    server.call("PATCH", "/config", {"set": {"worker_ttl": 3600}})
    server.enqueue("mail", 5, argument={"to": "at"})
    server.enqueue("mail", 5, argument={"to": "de"})
    server.enqueue(HOSTILE, 3, tags=[HOSTILE], argument=HOSTILE)
    for identifier, by in ((HOSTILE, None), ("keyed", "argument.to")):
        body = {"match": {"queue": "mail"}, "concurrency": 2, **({"by": by} if by else {})}
        server.call("PUT", f"/constraint/{quote(identifier, safe='')}", body)
    for identifier in (HOSTILE, "report"):
        body = {"every": 3600, "job": {"name": identifier}, "argument": HOSTILE}
        server.call("PUT", f"/schedule/{quote(identifier, safe='')}", body)
    for name in (HOSTILE, "plain"):
        server.call("POST", "/worker", {"name": name, "queues": [HOSTILE, "mail"]})
    for number, job in enumerate(server.pick("mail", count=4)):
        if number:
            outcome = {"type": "failure", "reason": "other", "message": HOSTILE, "should_retry": number > 1}
            server.finish(job, **({} if number == 3 else {**outcome, "group": HOSTILE}))


@pytest.fixture(scope="module", params=LOOKS)
def looks(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[Ui]:
    scheme, width = LOOKS[request.param]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    ui = Ui(context, server)
    yield ui
    ui.close()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_shows_itself_and_fits(looks: Ui, path: str) -> None:
    looks.go(path, PAGES[path])
    expect(looks.page.locator(".panel, .table").first).to_be_visible()
    expect(looks.page.locator("img")).to_have_count(0)
    looks.fits()


@pytest.mark.parametrize("path", ["/queues", "/constraints", "/schedules", "/workers", "/"])
def test_a_hostile_name_is_text(ui: Ui, path: str) -> None:
    ui.go(path)
    expect(ui.page.locator("tbody").get_by_text(HOSTILE).first).to_be_visible()


def test_a_link_with_a_hostile_name_leads_to_its_page(ui: Ui) -> None:
    ui.go("/queues", "Queues")
    ui.page.get_by_role("link", name=HOSTILE, exact=True).click()
    expect(ui.page.locator("h1")).to_contain_text(HOSTILE)
    ui.page.go_back()
    expect(ui.page.locator("h1")).to_have_text("Queues")


def test_what_is_not_there_is_said(ui: Ui) -> None:
    ui.refusals = 1
    ui.go("/queue/nowhere", "Not found")
    expect(ui.page.locator("main p").first).to_have_text("no such queue: nowhere")
    ui.go("/nowhere", "No such page")


@pytest.mark.parametrize("name", ["mail", HOSTILE])
def test_plural_paths_lead_on(ui: Ui, name: str) -> None:
    ui.go("/queues", "Queues")
    ui.go(f"/queues/{quote(name, safe='')}", name)
    assert unquote(ui.page.url).endswith(f"/ui/queue/{name}")
    ui.page.go_back()
    expect(ui.page.locator("h1")).to_have_text("Queues")


def test_the_policy_forbids_what_is_not_ours(server: Server) -> None:
    for path in ("/ui/", "/ui/queues", "/ui/static/app.js"):
        answer = requests.get(server.url + path, timeout=60)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_browsers_are_led_to_the_ui_and_programs_are_not(server: Server) -> None:
    for accept in ("text/html", "text/html,*/*;q=0.8", "*/*", None):
        told = requests.get(server.url, headers={"accept": accept}, allow_redirects=False, timeout=60)
        assert (told.status_code, told.headers["location"]) == (302, "/ui/")
    told = requests.get(server.url, headers={"accept": "application/json"}, timeout=60)
    assert (told.status_code, told.json()["error"]["code"]) == (404, "NOTFOUND")


def test_files_are_packed_and_asked_for_once(server: Server) -> None:
    url = server.url + "/ui/static/app.js"
    first = requests.get(url, headers={"accept-encoding": "gzip"}, stream=True, timeout=60)
    packed = first.raw.read(decode_content=False)
    plain = requests.get(url, headers={"accept-encoding": "identity"}, timeout=60)
    assert gzip.decompress(packed) == plain.content
    again = requests.get(url, headers={"if-none-match": first.headers["etag"]}, timeout=60)
    assert again.status_code == 304 and not again.content
    assert requests.get(server.url + "/ui/static/..%2f..%2fhttp%2fui.py", timeout=60).status_code == 404
    assert requests.get(server.url + "/ui/static/nothing.js", timeout=60).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
def test_pages_of_other_sites_change_nothing(server: Server, headers: dict[str, str]) -> None:
    for path in ("/queue/mail/pause", "/job", "/queue/other"):
        told = requests.post(server.url + path, headers={"accept": "application/json", **headers}, timeout=60)
        assert (told.status_code, told.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert requests.get(server.url + "/queues", headers=headers, timeout=60).status_code == 200
    assert server.queue("mail")["paused"] is False


def test_own_pages_may_change_things_also_where_browsers_say_less(server: Server) -> None:
    for headers in (
        {"origin": server.url},
        {"sec-fetch-site": "same-origin", "origin": "https://jq.example"},
    ):
        told = requests.post(server.url + "/queue/mail/resume", headers=headers, timeout=60)
        assert told.status_code == 200


# -- the frame ----------------------------------------------------------------------------------------


def test_the_keyboard_leads_everywhere(ui: Ui) -> None:
    ui.go("/queues", "Queues")
    keyboard = ui.page.keyboard
    expect(ui.row("mail")).to_be_visible()
    keyboard.press("j")
    keyboard.press("j")
    keyboard.press("k")
    expect(ui.page.locator("tbody tr").first).to_be_focused()
    keyboard.press("/")
    expect(ui.page.get_by_label("Filter by name")).to_be_focused()
    keyboard.type("?")
    expect(ui.dialog).to_have_count(0)
    keyboard.press("Escape")
    keyboard.press("?")
    expect(ui.dialog).to_contain_text("next and previous row")
    keyboard.press("Escape")
    expect(ui.dialog).to_have_count(0)
    keyboard.press("g")
    keyboard.press("w")
    expect(ui.page.locator("h1")).to_have_text("Workers")


def test_the_first_key_leads_past_the_bar(new_ui: Ui) -> None:
    ui = new_ui
    ui.go("/queues", "Queues")
    ui.page.keyboard.press("Tab")
    expect(ui.page.get_by_text("Skip to content")).to_be_focused()
    ui.page.keyboard.press("Enter")
    expect(ui.page.locator("#main")).to_be_focused()


def test_the_colours_chosen_are_kept(new_ui: Ui) -> None:
    ui = new_ui
    ui.go("/workers", "Workers")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = ui.page.evaluate(ground)
    ui.page.locator("#theme").click()
    ui.page.locator("#theme").click()
    assert ui.page.evaluate(ground) != before
    ui.page.reload()
    expect(ui.page.locator("#theme")).to_have_text("Dark")
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


def test_the_overview_follows_what_happens(ui: Ui) -> None:
    ui.go("/", "Overview")
    expect(ui.page.locator("#live")).to_have_text("Live")
    ui.server.enqueue("comes", 7)
    expect(ui.row("comes").locator("td").nth(1)).to_have_text("7")


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
    assert not [url for url in asked if "/overview" in url]
    with ui.page.expect_request("**/overview"):
        ui.page.evaluate(hide, False)


def test_times_as_text(ui: Ui) -> None:
    ui.go("/", "Overview")
    texts = """async () => {
        const { duration, rate, untilText } = await import('/ui/static/format.js');
        const [at, clock] = [Date.now(), Date.now];
        Date.now = () => at;
        try {
            return [...[999, 1000, 1049, 3400, 9940, 60000].map(duration), rate(1), rate(1.26),
                ...[-1, 900, 3000, 59500].map((ms) => untilText(at + ms))];
        } finally {
            Date.now = clock;
        }
    }"""
    *plain, passed, near, soon, later = ui.page.evaluate(texts)
    assert plain == ["999 ms", "1 s", "1 s", "3.4 s", "9.9 s", "1 min", "1/s", "1.3/s"]
    assert (passed, near[:5], soon, later) == ("any moment", "in 0.", "in 3 s", "in 59 s")


def test_queues_are_found_by_a_part_of_their_name(ui: Ui) -> None:
    for number in range(55):
        ui.server.enqueue(f"found-{number:02d}")
    ui.go("/queues", "Queues")
    ui.page.get_by_label("Filter by name").fill("found-")
    expect(ui.page.locator("tbody tr").first).to_contain_text("found-00")
    expect(ui.page.locator("tbody tr")).to_have_count(50)
    ui.button("Next →").click()
    expect(ui.page.locator("tbody tr")).to_have_count(5)
    ui.button("← Previous").click()
    expect(ui.page.locator("tbody tr")).to_have_count(50)
    ui.page.get_by_label("Filter by name").fill("found-07")
    expect(ui.page.locator("tbody tr")).to_have_count(1)
    assert "name=found-07" in ui.page.url
    ui.page.reload()
    expect(ui.page.locator("tbody tr")).to_have_count(1)
