"""What tests of the web UI share: a browser for each file, and tabs that stay."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from http_live import live_server
from processes import MasterProcess
from topologies import free_ports
from ui_support import LIGHT, Server, Tab, Ui, chromium


@pytest.fixture(scope="module")  # no longer: while it is there, no other loop may run in this process
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(redis_url: str) -> Iterator[Server]:
    namespace = "{t" + secrets.token_hex(6) + "}"
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as process:
        yield Server(process.url)


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Tab]:
    tab = Tab(browser, viewport=LIGHT, timezone_id="UTC")
    yield tab
    tab.close()


@pytest.fixture
def ui(tab: Tab, server: Server) -> Iterator[Ui]:
    with tab.used(server) as ui:
        yield ui


@pytest.fixture
def new_ui(browser: Browser, server: Server) -> Iterator[Ui]:
    """A tab for this test alone: of loading, of what is kept, or of a clock that is not put back."""
    ui = Ui(browser.new_context(viewport=LIGHT), server)
    yield ui
    ui.close()


# -- a namespace for each test ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port() -> int:
    """Of all servers of a file: so a tab can stay."""
    return free_ports(1)[0]


@pytest.fixture
def site(redis_url: str, port: int) -> Iterator[Server]:
    with live_server(redis_url, "{t" + secrets.token_hex(6) + "}", port) as live:
        site = Server(live.url)
        yield site
        site.session.close()


@pytest.fixture
def page(tab: Tab, site: Server) -> Iterator[Page]:
    with tab.used(site) as ui:
        ui.refusals = 100
        yield ui.page
