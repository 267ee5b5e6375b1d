"""The pictures of docs/: each is what its text makes, and on a page."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "docs" / "pictures").glob("*.txt"))
drawn = runpy.run_path(str(ROOT / "tools" / "pictures.py"))["drawn"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_is_what_its_text_makes(source: Path) -> None:
    """`python tools/pictures.py` draws them anew."""
    assert source.with_suffix(".svg").read_text() == drawn(source.read_text())


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert [path.stem for path in SOURCES if f"(pictures/{path.stem}.svg)" not in pages] == []
