"""The pages behind a proxy that serves them under a path, which it passes on or takes away."""

from __future__ import annotations

import http.server
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import requests
from playwright.sync_api import Browser, expect

from processes import MasterProcess
from ui_support import Server, Ui

PREFIX = "/tools/jq"


@contextmanager
def proxy(url: str, strips: bool) -> Iterator[str]:
    """Its own URL, under which it serves what is at `url`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do(self) -> None:
            if not self.path.startswith(f"{PREFIX}/"):
                self.send_error(404)
                return
            sent = {name.lower(): value for name, value in self.headers.items()} | {"accept-encoding": "identity"}
            path = self.path.removeprefix(PREFIX) if strips else self.path
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            with requests.request(
                self.command, url + path, data=body, headers=sent, stream=True, allow_redirects=False
            ) as answer:
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                with suppress(OSError, requests.RequestException):  # whichever of both has gone
                    for piece in answer.iter_content(None):
                        self.wfile.write(piece)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("strips", [True, False])
def test_pages_and_requests_stay_under_the_path(browser: Browser, redis_url: str, strips: bool) -> None:
    options = ["--redis", redis_url, "--namespace", "{t" + secrets.token_hex(6) + "}", "--root-path", PREFIX]
    with ExitStack() as stack:
        process = stack.enter_context(MasterProcess(*options))
        url = stack.enter_context(proxy(process.url, strips))
        server = Server(url)
        server.enqueue("mail")
        ui = Ui(browser.new_context(), server)
        stack.callback(ui.close)
        ui.page.goto(f"{url}/")
        expect(ui.page).to_have_url(f"{url}/ui/")
        expect(ui.page.locator("#main")).to_contain_text("mail")
        ui.page.locator("#nav").get_by_role("link", name="Queues").click()
        expect(ui.page).to_have_url(f"{url}/ui/queues")
        ui.page.get_by_role("link", name="mail").first.click()
        expect(ui.page.locator("h1")).to_contain_text("mail")
        ui.page.reload()
        expect(ui.page.locator("h1")).to_contain_text("mail")
        assert ui.requested and [one for one in ui.requested if not one.startswith(f"{url}/")] == []
