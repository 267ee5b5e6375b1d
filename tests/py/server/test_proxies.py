"""The recipes of docs/operating.md for proxies, with real ones; and TLS in the master itself."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import expect

from jqmaster.engine.engine import Engine, connect
from processes import MasterProcess
from topologies import free_ports
from ui_support import chromium

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "operating.md").read_text()
PASSWORD = "secret"
CHEAP = "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"  # its hash, at little cost


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a certificate of localhost, and a file of passwords."""
    folder = tmp_path_factory.mktemp("proxy")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "jq.key",
         "-out", folder / "jq.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    digest = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], check=True, capture_output=True, text=True).stdout
    (folder / "jq.htpasswd").write_text("".join(f"{name}:{digest}" for name in ("ann", "bob", "eve")))
    return folder


@pytest.fixture(scope="module")
def master(redis_url: str) -> Iterator[MasterProcess]:
    namespace = "{t" + secrets.token_hex(6) + "}"
    options = ("--redis", redis_url, "--namespace", namespace, "--trusted-proxies", "127.0.0.1")
    with MasterProcess(*options, "--allowed-hosts", "localhost") as master:
        yield master


def recipe(language: str, master: MasterProcess, folder: Path, port: int) -> str:
    """As the page has it, for this test's places."""
    [text] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    changes = {
        "/etc/ssl/": f"{folder}/", "/etc/nginx/": f"{folder}/", "127.0.0.1:8400": f"127.0.0.1:{master.port}",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "jq.example.org": "localhost",
        "https://localhost {": f"https://localhost:{port} {{",
    }  # fmt: skip
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, master: MasterProcess, folder: Path) -> Iterator[str]:
    """Where it listens."""
    name: str = request.param
    program = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip(f"no {name} here")
    [port] = free_ports(1)
    config = folder / f"{name}.conf"
    text = recipe(name, master, folder, port)
    if name == "nginx":
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        user = f"user {getpass.getuser()};" if os.getuid() == 0 else ""  # or its workers cannot read the files
        own = f"{user} pid {folder}/nginx.pid; daemon off; events {{}}"
        config.write_text(f"{own} http {{ access_log off; {places}\n{text}}}")
        command = [program, "-c", str(config), "-e", str(folder / "nginx.log")]
    else:
        own = f"{{\n    admin off\n    auto_https disable_redirects\n    storage file_system {folder}\n}}\n"
        config.write_text(own + re.sub(r"\$2a\$\S+", lambda _: CHEAP, text))
        command = [program, "run", "--adapter", "caddyfile", "--config", str(config)]
    with (folder / f"{name}.out").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        url = f"https://localhost:{port}"
        try:
            deadline = time.monotonic() + 60
            while not answers(url, folder):
                assert process.poll() is None and time.monotonic() < deadline, (folder / f"{name}.out").read_text()
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait(60)


def answers(url: str, folder: Path) -> bool:
    try:
        return requests.get(f"{url}/alive", verify=folder / "jq.crt", timeout=60).status_code in (200, 401)
    except requests.RequestException:
        return False


def ask(method: str, url: str, folder: Path, user: str | None = "ann", **headers: str) -> requests.Response:
    who = None if user is None else (user, PASSWORD)
    headers |= {"accept": "application/json"}
    sent: Any = {"json": {"paused": True}} if method == "POST" else {}
    return requests.request(method, url, auth=who, verify=folder / "jq.crt", timeout=60, headers=headers, **sent)


def test_a_proxy_says_who_it_is(proxy: str, folder: Path) -> None:
    told = ask("GET", f"{proxy}/session", folder).json()
    assert (told["name"], told["asks"], "admin" in told["roles"]) == ("ann", True, True)
    assert ask("POST", f"{proxy}/queue/mail", folder).status_code == 200
    [entry, *_] = ask("GET", f"{proxy}/trail", folder).json()["trail"]
    assert (entry["actor"], entry["on"]) == ("ann", "mail")
    assert ask("GET", f"{proxy}/queues", folder, user=None).status_code == 401


def test_nobody_makes_themselves_somebody_else(proxy: str, folder: Path) -> None:
    forged = {"X-Forwarded-User": "root", "X-Forwarded-Roles": "admin"}
    assert ask("GET", f"{proxy}/session", folder, **forged).json()["name"] == "ann"
    eve = ask("GET", f"{proxy}/session", folder, user="eve", **forged)
    assert eve.status_code == 401 or eve.json()["roles"] == ["viewer"]


def test_the_pages_work_behind_it(proxy: str, folder: Path) -> None:
    with chromium() as browser:
        context = browser.new_context(
            http_credentials={"username": "ann", "password": PASSWORD}, ignore_https_errors=True
        )  # fmt: skip
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{proxy}/ui/")
        expect(page.locator("#user")).to_contain_text("ann")
        expect(page.locator("h1")).to_contain_text("Overview")
        expect(page.locator("#live")).to_contain_text("Live")  # events come through
        ask("POST", f"{proxy}/queue/mail", folder)
        page.goto(f"{proxy}/ui/queue/mail")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator("#toasts")).not_to_be_empty()
        assert problems == []
        context.close()


def test_the_master_speaks_tls_itself(folder: Path, redis_url: str, namespace: str) -> None:
    async def make() -> str:
        async with connect(redis_url) as redis:
            return str((await Engine(redis, namespace).grant("all", ["admin"]))["key"])

    with ThreadPoolExecutor() as thread:
        key = thread.submit(asyncio.run, make()).result()
    files = ("--tls-cert", str(folder / "jq.crt"), "--tls-key", str(folder / "jq.key"))
    with MasterProcess("--redis", redis_url, "--namespace", namespace, "--host", "0.0.0.0", *files) as master:
        url = f"https://localhost:{master.port}"
        assert master.url.startswith("https://")
        headers = {"authorization": f"Bearer {key}"}
        assert requests.get(f"{url}/queues", headers=headers, verify=folder / "jq.crt", timeout=60).status_code == 200
        answer = requests.post(f"{url}/session", json={"key": key}, verify=folder / "jq.crt", timeout=60)
        assert "; Secure" in answer.headers["set-cookie"]
        with pytest.raises(requests.RequestException):
            requests.get(f"http://localhost:{master.port}/alive", timeout=60)


def test_a_certificate_that_cannot_be_used_is_said_at_once(folder: Path, redis_url: str, namespace: str) -> None:
    with pytest.raises(RuntimeError, match="no certificate with its key"):
        MasterProcess(
            "--redis", redis_url, "--namespace", namespace, "--tls-cert", str(folder / "jq.htpasswd")
        )  # fmt: skip
