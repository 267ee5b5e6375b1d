"""The site that is made of the pages: `make docs` builds it, strictly."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_menu_has_every_page() -> None:
    menu = set(re.findall(r'"([\w/.-]+\.md)"', (ROOT / "tools" / "site.toml").read_text()))
    pages = {str(path.relative_to(ROOT)) for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md")}
    assert menu == pages | {"bench/README.md", "tests/protocol/README.md"}
