"""Who may use the pages: the login, what each role sees, the pages of keys and of the trail."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from jqmaster.engine.engine import Engine, connect
from processes import MasterProcess
from ui_support import Server, Ui, dialog, go


@pytest.fixture(scope="module")
def namespace() -> str:
    return "{t" + secrets.token_hex(6) + "}"


@pytest.fixture(scope="module")
def keys(redis_url: str, namespace: str) -> dict[str, dict[str, Any]]:
    """A key of each role."""

    async def make() -> dict[str, dict[str, Any]]:
        async with connect(redis_url) as redis:
            engine = Engine(redis, namespace)
            roles = ("viewer", "operator", "admin")
            return {role: await engine.grant(f"{role}-key", [role]) for role in roles}

    with ThreadPoolExecutor() as thread:  # here runs a loop of the browser's
        return thread.submit(asyncio.run, make()).result()


@pytest.fixture(scope="module")
def server(redis_url: str, namespace: str, keys: dict[str, dict[str, Any]]) -> Iterator[Server]:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as process:
        server = Server(process.url)
        server.session.headers["authorization"] = f"Bearer {keys['admin']['key']}"
        server.call("POST", "/queue/mail", {"max_waiting": 5})
        yield server


@pytest.fixture
def ui(browser: Browser, server: Server) -> Iterator[Ui]:
    ui = Ui(browser.new_context(viewport={"width": 1280, "height": 900}), server)
    yield ui
    ui.close()


def log_in(ui: Ui, key: dict[str, Any], path: str = "/") -> Ui:
    ui.refusals += 1  # what it may do is asked before
    ui.load(path, "Log in")
    ui.page.get_by_label("Key", exact=True).fill(key["key"])
    ui.button("Log in").click()
    expect(ui.page.locator("#user")).to_contain_text(key["name"])
    return ui


def test_nothing_is_shown_before_a_key(ui: Ui) -> None:
    ui.refusals += 2
    ui.go("/queue/mail", "Log in")
    assert ui.page.locator("nav a").count() == 0
    ui.page.get_by_label("Key", exact=True).fill("jq_wrong")
    ui.button("Log in").click()
    expect(ui.page.get_by_role("alert")).to_contain_text("This key is unknown")
    assert ui.page.context.cookies() == []


def test_one_goes_on_where_one_was(ui: Ui, keys: dict[str, Any]) -> None:
    log_in(ui, keys["admin"], "/queue/mail")
    expect(ui.page.locator("h1")).to_contain_text("mail")
    [cookie] = ui.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    ui.page.reload()
    expect(ui.page.locator("h1")).to_contain_text("mail")


def test_each_role_sees_what_it_may_do(ui: Ui, keys: dict[str, Any]) -> None:
    log_in(ui, keys["viewer"], "/queue/mail")
    expect(ui.page.locator("nav")).not_to_contain_text("Enqueue")
    expect(ui.page.locator("nav")).not_to_contain_text("Audit log")
    expect(ui.button("Pause")).to_have_count(0)
    ui.button("Log out").click()
    expect(ui.page.locator("h1")).to_have_text("Log in")
    log_in(ui, keys["operator"], "/queue/mail")
    expect(ui.page.locator("nav")).to_contain_text("Audit log")
    expect(ui.page.locator("nav")).not_to_contain_text("Keys")
    ui.button("Pause").click()
    expect(ui.button("Resume").first).to_be_visible()
    ui.go("/trail", "Audit log")
    expect(ui.row("operator-key").first).to_contain_text("mail")


def test_keys_are_made_and_taken_away(ui: Ui, keys: dict[str, Any], server: Server) -> None:
    log_in(ui, keys["admin"], "/keys")
    expect(ui.page.locator("h1")).to_contain_text("Keys")
    ui.button("New key").click()
    ui.dialog.get_by_label("Name").fill("grafana")
    ui.dialog.get_by_label("Expires after").fill("30")
    ui.dialog.get_by_role("button", name="Create").click()
    key = ui.dialog.locator("code.key").inner_text()
    assert re.fullmatch(r"jq_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key)
    ui.dialog.get_by_role("button", name="Close").click()
    expect(ui.row("grafana")).to_contain_text("viewer")
    ui.button("Revoke grafana").click()
    ui.dialog.get_by_role("button", name="Revoke").click()
    expect(ui.row("grafana")).to_have_count(0)
    assert {one["name"] for one in server.get("/keys")["keys"]} == {"viewer-key", "operator-key", "admin-key"}


def test_the_first_key_is_an_admins(page: Page, site: Server) -> None:
    go(page, "/ui/keys")
    page.get_by_role("button", name="New key").click()
    expect(dialog(page)).to_contain_text("every request needs a key")
    dialog(page).get_by_label("Name").fill("ann")
    dialog(page).get_by_role("button", name="Create").click()
    key = dialog(page).locator("code.key").inner_text()
    site.session.headers["authorization"] = f"Bearer {key}"
    assert [(one["name"], one["roles"]) for one in site.get("/keys")["keys"]] == [("ann", ["admin"])]


def test_when_the_key_is_revoked_the_page_asks_again(ui: Ui, keys: dict[str, Any], server: Server) -> None:
    made = server.call("POST", "/keys", {"name": "short", "roles": ["viewer"]})
    log_in(ui, made, "/queues")
    ui.refusals += 5
    server.call("DELETE", f"/key/{made['id']}")
    expect(ui.page.locator("h1")).to_contain_text("Log in")
    expect(ui.page.locator("#user")).to_be_hidden()


def test_a_key_bound_to_queues_sees_these(ui: Ui, server: Server) -> None:
    server.enqueue("mail.de", 3)
    server.enqueue("report", 2)
    server.call("POST", "/queue/mail.de", {"paused": True})
    key = server.call("POST", "/keys", {"name": "bound", "roles": ["viewer"], "queues": ["mail.*"]})
    log_in(ui, {**key, "name": "bound"})
    expect(ui.page.locator(".verdict")).to_contain_text("Queue mail.de is paused; 3 jobs wait")
    expect(ui.row("mail.de")).to_have_count(1)
    ui.go("/queues", "Queues")
    expect(ui.row("mail.de")).to_have_count(1)
    expect(ui.row("report")).to_have_count(0)
    ui.go("/jobs", "Jobs")
    ui.page.locator("main").get_by_role("link", name="mail.de").click()
    expect(ui.page.locator("tbody tr[data-key]")).to_have_count(3)
    ui.page.locator("tbody tr[data-key] a").first.click()
    expect(ui.page.locator("h1")).to_contain_text("mail.de")
    ui.go("/queue/mail.de", "mail.de")
    expect(ui.page.locator("main")).to_contain_text("Settings")
    expect(ui.page.locator("nav a")).to_have_text(["Overview", "Queues", "Jobs"])


def test_a_key_of_programs_sees_what_it_may(ui: Ui, server: Server) -> None:
    pusher, worker = (server.call("POST", "/keys", {"name": role, "roles": [role]}) for role in ("pusher", "worker"))
    log_in(ui, {**pusher, "name": "pusher"})
    expect(ui.page.locator("h1")).to_have_text("Enqueue a job")
    expect(ui.page.locator("nav a")).to_have_text(["Enqueue"])
    ui.go(f"/job/{server.add('pushed')}", "pushed")
    expect(ui.page.locator("main a")).to_have_text(["Enqueue again…"])
    ui.go("/queue/pushed", "Queue")
    ui.page.locator("main").get_by_role("link", name="Enqueue").click()
    expect(ui.page.locator("h1")).to_have_text("Enqueue a job")
    ui.button("Log out").click()
    log_in(ui, {**worker, "name": "worker"})
    expect(ui.page.locator("main")).to_contain_text("does not show this page: it has the role worker")
