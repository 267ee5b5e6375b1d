"""The site that is made of the pages: each is there once, its links lead somewhere, lists are lists. Where zensical is
installed (`make docs` does it) the site is built, and a browser reads it."""

from __future__ import annotations

import functools
import http.server
import os
import re
import runpy
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ui_support import browser  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[3]
site = runpy.run_path(str(ROOT / "tools" / "site.py"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    site["write_source"](folder)
    return folder


def zensical() -> str:
    places = os.pathsep.join([os.environ["PATH"], str(ROOT / "build" / "release" / "bin")])
    found = shutil.which("zensical", path=places)
    if not found:
        pytest.skip("no zensical here")
    return found


def build(source: Path) -> subprocess.CompletedProcess[str]:
    command = [zensical(), "build", "--strict"]
    return subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=110)


def test_every_page_is_there_and_its_links_lead_to_pages(source: Path) -> None:
    pages = source / "source"
    menu = set(re.findall(r'"([\w/.-]+\.md)"', (source / "zensical.toml").read_text()))
    assert menu == {str(site["place"](page)) for page in site["pages"]()}
    for page in menu:
        of = Path(page)
        for _, to in site["linked"]((pages / of).read_text(), of):
            assert (pages / to).is_file(), (page, to)


def test_lists_are_behind_an_empty_line_and_their_items_stay_together() -> None:
    text = "Two:\n- one\n  more\n- two\n\n1. first\n\n   ```sh\n   - x\n   ```\n2. second\n\nEnd\n\n```\na\n- b\n```\n"
    assert site["with_lists"](text) == text.replace("Two:\n", "Two:\n\n").replace("\n   ", "\n    ")


def test_a_page_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"docs/nothing\.md is not there"):
        site["with_places"]("[it](nothing.md)", Path("docs/x.md"))


@pytest.fixture(scope="module")
def url(source: Path) -> Iterator[str]:
    ended = build(source)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(source / "html"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_in_light_and_dark_and_searched(url: str, scheme: str, browser: Browser) -> None:
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    elsewhere: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(url) else elsewhere.append(request.url))
    page.goto(f"{url}/docs/how-jq-thinks/")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")
    # A picture is shown as what the reader's system says as well: test_pictures.py looks at both.
    assert page.evaluate("[...document.querySelectorAll('article img')].map(it => it.naturalWidth > 100)") == [True] * 4
    page.keyboard.press("Control+k")
    page.keyboard.type("unique jobs")
    expect(page.get_by_text("11. Unique jobs").first).to_be_visible(timeout=20_000)
    context.close()
    assert elsewhere == []


def test_a_broken_link_fails(source: Path, url: str, tmp_path: Path) -> None:
    shutil.copytree(source / "source", tmp_path / "source")
    shutil.copy(source / "zensical.toml", tmp_path)
    page = tmp_path / "source" / "docs" / "design.md"
    page.write_text(page.read_text() + "\n[it](operating.md#nowhere)\n")
    ended = build(tmp_path)
    assert ended.returncode != 0 and "anchor does not exist" in ended.stdout + ended.stderr
