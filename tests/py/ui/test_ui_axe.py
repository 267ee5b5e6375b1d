"""Every page, with content and without, in three looks: what axe-core finds, and what it weighs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from jqmaster import __version__
from processes import MasterProcess
from servers import RedisServer
from ui_support import Server, Ui

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "tools/js/node_modules/axe-core/axe.min.js"
PAGES = (
    "/", "/changes", "/queues", "/queue/mail", "/queue/~.", "/jobs", "/jobs?queue=~..", "/failures", "/limits",
    "/limit/~.", "/schedules", "/schedule/mail", "/workers", "/worker/w-1", "/enqueue", "/trail", "/keys", "/nothing",
)  # fmt: skip
# Of an empty system these are pages that others show as well: one that is not there, an empty list, no keys.
SAME_WHEN_EMPTY = ("/schedule/mail", "/worker/w-1", "/queue/~.", "/jobs?queue=~..", "/limit/~.", "/keys", "/nothing")
# What colours decide: dark differs from light in nothing else, and narrow only in what stands where.
COLOURS = ["color-contrast", "link-in-text-block"]
LOOKS: dict[str, tuple[Literal["light", "dark"], ViewportSize, dict[str, Any]]] = {
    "light": ("light", {"width": 1280, "height": 900}, {}),
    "dark": ("dark", {"width": 1280, "height": 900}, {"runOnly": COLOURS}),
    "narrow": ("light", {"width": 390, "height": 740}, {"rules": {rule: {"enabled": False} for rule in COLOURS}}),
}
MOST = (120_000, 20, 0.05)  # bytes, requests, layout shift
WATCH_SHIFTS = """window.shift = 0; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({type: 'layout-shift', buffered: true})"""


@pytest.fixture(scope="module")
def empty() -> Iterator[Server]:
    with RedisServer() as redis, MasterProcess("--redis", redis.url) as master:
        yield Server(master.url)


@pytest.fixture(scope="module")
def busy() -> Iterator[Server]:
    with (
        RedisServer() as redis,
        MasterProcess("--redis", redis.url, "--environment", "trial", "--environment-color", "amber") as master,
    ):
        server = Server(master.url)
        fill(server)
        yield server


def fill(server: Server) -> None:
    """Something of everything, and names that could be taken for steps within a path."""
    for name in ("mail", ".", ".."):
        server.enqueue(name, 30, queue=name, tags=[name], argument={"customer": "acme"})
        server.call(
            "POST", f"/schedule/{'~' + name if name[0] == '.' else name}", {"every": 3600, "job": {"name": name}}
        )
    server.call("PUT", "/constraint/~.", {"match": {"name": "mail"}, "by": "argument.customer", "concurrency": 2})
    server.call("POST", "/worker", {"name": "w-1", "queues": ["mail"], "announce": True, "host": "h", "max_jobs": 9})
    for index, job in enumerate(server.pick("mail", count=2) + server.pick(".", count=8)):
        if index:
            outcome = {"type": "failure", "group": "SMTP refused", "error": "550 no such user"} if index % 2 else {}
            server.finish(job, **outcome)
    server.enqueue("later", 3, delay=1000)
    server.call("POST", "/queue/~..", {"paused": True})


def found_by_axe(page: Page, **options: Any) -> list[str]:
    # The page lets no script in but its own: this one comes by way of the developer's tools.
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    # A selector for each element, found or not, is a third of its work; what is found says its markup.
    asked = "(more) => axe.run(document, {resultTypes: ['violations'], selectors: false, ...more})"
    found = page.evaluate(asked, options)
    return [
        f"{one['id']}: {node['html'][:160]} ({node['failureSummary'][:200]})"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def settled(ui: Ui) -> None:
    expect(ui.page.locator("h1")).to_be_visible()
    ui.page.wait_for_load_state("load")
    expect(ui.page.locator(".loading, .waiting")).to_have_count(0)


def test_all_pages_are_among_those() -> None:
    paths = re.findall(r"page\('(/[^']*)'", (ROOT / "python/jqmaster/ui/static/app.js").read_text())
    wanted = {re.sub(r":\w+", "NAME", path) for path in paths} - {"/job/NAME"}
    assert wanted == {re.sub(r"^(/\w+/).+", r"\1NAME", page.partition("?")[0]) for page in PAGES} - {"/nothing"}


@pytest.mark.parametrize("state", ["busy", "empty"])
def test_axe_finds_nothing(browser: Browser, state: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(state)
    ui = Ui(browser.new_context(reduced_motion="reduce"), server)
    ui.refusals = 1000  # of an empty system some pages name what is not there
    targets = [target for target in PAGES if state == "busy" or target not in SAME_WHEN_EMPTY]
    if state == "busy":
        jobs = [
            server.get(f"/jobs?count=1&status={word}")["jobs"][0] for word in ("queued", "running", "retrying", "done")
        ]
        targets += [f"/job/{job['id']}" for job in jobs]
    wrong = set()
    for target in targets:
        ui.go(target)
        settled(ui)
        for look, (scheme, size, options) in LOOKS.items():
            ui.page.emulate_media(color_scheme=scheme)
            ui.page.set_viewport_size(size)
            ui.fits()
            wrong |= {f"{target} {look}: {one}" for one in found_by_axe(ui.page, **options)}
    assert not wrong, "\n".join(sorted(wrong))
    ui.close()


def test_names_of_dots_break_no_page(browser: Browser, busy: Server) -> None:
    ui = Ui(browser.new_context(), busy)
    for name in (".", ".."):
        ui.go("/queues", "Queues")
        ui.page.get_by_role("link", name=name, exact=True).first.click()
        expect(ui.page.locator("h1")).to_contain_text(name)
        expect(ui.page).to_have_url(f"{busy.url}/ui/queue/~{name}")
        expect(ui.page.locator("main")).not_to_contain_text("Not found")
        ui.page.reload()
        expect(ui.page.locator("h1")).to_contain_text(name)
    ui.go("/", "Overview")
    expect(ui.page.locator("main")).to_contain_text("mail")
    ui.go("/jobs", "Jobs")
    expect(ui.page.locator("tbody tr").first).to_be_visible()
    ui.close()


def test_the_header_names_the_system_and_keeps_the_time_range(browser: Browser, busy: Server) -> None:
    ui = Ui(browser.new_context(), busy)
    ui.go("/", "Overview")
    chooser = ui.page.get_by_label("Time range")
    expect(chooser).to_have_value("1h")
    ui.page.get_by_role("button", name="more of this system").click()
    expect(ui.dialog).to_contain_text(f"JQversion {__version__}")
    expect(ui.dialog.locator("h2")).to_have_text("trial")
    ui.button("Close").click()
    chooser.select_option("6h")
    expect(ui.page).to_have_url(f"{busy.url}/ui/?range=6h")
    ui.page.get_by_role("link", name="Queues", exact=True).first.click()
    expect(ui.page).to_have_url(f"{busy.url}/ui/queues?range=6h")
    ui.page.get_by_role("link", name="mail", exact=True).first.click()
    expect(ui.page).to_have_url(f"{busy.url}/ui/queue/mail?range=6h")
    ui.page.go_back()
    expect(chooser).to_have_value("6h")
    ui.close()


def test_pages_are_light_and_stand_still(browser: Browser, busy: Server) -> None:
    """What a browser that knows nothing yet has to load for a page, as it comes over the wire, and how far it
    moves."""
    wrong = {}
    jobs = busy.get("/jobs?count=1&status=queued")["jobs"]
    for target in (*PAGES, f"/job/{jobs[0]['id']}"):
        ui = Ui(browser.new_context(viewport={"width": 1280, "height": 900}), busy)
        ui.refusals = 10
        devtools = ui.page.context.new_cdp_session(ui.page)
        devtools.send("Network.enable")
        sizes: list[float] = []
        devtools.on("Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"]))
        ui.page.add_init_script(WATCH_SHIFTS)
        ui.load(target)
        ui.page.wait_for_timeout(1500)
        requests_ = len([url for url in ui.requested if not url.startswith("blob:")])
        shift = ui.page.evaluate("window.shift")
        ui.close()
        figures = (sum(sizes), requests_, shift)
        if any(got > most for got, most in zip(figures, MOST, strict=True)):
            wrong[target] = figures
    assert not wrong
