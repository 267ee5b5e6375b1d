"""The site that is made of the pages. Where zensical is installed (`make docs` does it) it is built."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
site = runpy.run_path(str(ROOT / "tools" / "site.py"))


def build(source: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([os.environ["PATH"], str(ROOT / "build" / "release" / "bin")])
    if not (zensical := shutil.which("zensical", path=path)):
        pytest.skip("no zensical here")
    return subprocess.run([zensical, "build", "--strict"], cwd=source, capture_output=True, text=True, timeout=110)


def test_the_menu_has_every_page() -> None:
    menu = set(re.findall(r'"([\w/.-]+\.md)"', (ROOT / "tools" / "site.toml").read_text()))
    pages = {str(path.relative_to(ROOT)) for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md")}
    assert menu == pages | {"bench/README.md", "tests/protocol/README.md"}


def test_it_is_built_and_a_broken_link_fails(tmp_path: Path) -> None:
    site["write_source"](tmp_path)
    ended = build(tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    page = tmp_path / "source" / "docs" / "design.md"
    page.write_text(page.read_text() + "\n[it](operating.md#nowhere)\n")
    assert build(tmp_path).returncode != 0
