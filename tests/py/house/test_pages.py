"""The pages: what they link to is there, they are as wide as agreed, and what they repeat is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import jqmaster

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    ROOT / "bench" / "README.md",
    ROOT / "tests" / "protocol" / "README.md",
]
CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
WIDTH = 100


def anchor(heading: str) -> str:
    """What a heading can be linked by, as sites that show Markdown make it."""
    text = re.sub(r"`|\[([^]]*)]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_links_to_is_there(page: Path) -> None:
    missing = []
    for link in re.findall(r"]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        if re.match(r"https?:", link):
            continue
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (place and place not in anchors(target)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_no_wider_than_agreed(page: Path) -> None:
    """But for tables, code, and what has no blank to break at."""
    lines = CODE.sub("", page.read_text()).splitlines()
    wide = [line for line in lines if len(line) > WIDTH and "|" not in line]
    wide = [f"{len(line)}: {line}" for line in wide if " " in re.sub(r"`[^`]*`", "x", line.strip())]
    assert not wide, f"wider than {WIDTH}:\n" + "\n".join(wide)


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    pictures = (ROOT / "docs" / "pictures").glob("*.svg")
    assert [path.name for path in pictures if f"(pictures/{path.name})" not in pages] == []


def test_the_changelog_knows_the_version() -> None:
    assert re.search(rf"\b{re.escape(jqmaster.__version__)}\b", (ROOT / "CHANGELOG.md").read_text())


def test_a_rule_of_the_protocol_names_a_case_of_the_suite() -> None:
    topics = [json.loads(path.read_text()) for path in (ROOT / "tests" / "protocol").glob("*.json")]
    cases = {f"{topic['topic']}: {case['case']}" for topic in topics for case in topic["cases"]}
    rules = (ROOT / "docs" / "protocol.md").read_text().split("\n## Rules")[1].split("\n## ")[0]
    named = re.findall(r"^\| \d+ \| .+ \| (.+) \|$", rules, re.MULTILINE)
    assert len(named) == 10
    assert set(named) <= cases


def test_the_menu_has_every_page() -> None:
    menu = set(re.findall(r'"([\w/.-]+\.md)"', (ROOT / "tools" / "site.toml").read_text()))
    pages = {str(path.relative_to(ROOT)) for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md")}
    assert menu == pages | {"bench/README.md", "tests/protocol/README.md"}
