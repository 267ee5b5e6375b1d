"""What the package index would show: the README with links that lead somewhere, URLs when the project has a home."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

import jqmaster

ROOT = Path(__file__).resolve().parents[3]
HOME = "https://code.example.org/jq/jq"
MAKE = "import setuptools.build_meta as build; print(build.prepare_metadata_for_build_wheel(r'{}'))"


def metadata(folder: Path, home: str) -> Message:
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("python", "scripts", "jqlua"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("setup.py", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, checkout)
    text = (ROOT / "pyproject.toml").read_text()
    (checkout / "pyproject.toml").write_text(re.sub(r'^home = ""', f'home = "{home}"', text, flags=re.MULTILINE))
    code = MAKE.format(folder)
    ended = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    return email.message_from_string((folder / ended.stdout.split()[-1] / "METADATA").read_text())


def links(told: Message) -> list[str]:
    text = str(told.get_payload())
    assert "# JQ" in text and "## Working on it" in text
    return re.findall(r"]\(([^)]+)\)", text)


def test_without_a_home_nothing_leads_nowhere(tmp_path: Path) -> None:
    if 'home = ""' not in (ROOT / "pyproject.toml").read_text():
        pytest.skip("the project has a home")
    told = metadata(tmp_path, "")
    assert told["Version"] == jqmaster.__version__
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_all("License-File") == ["LICENSE", "python/jqmaster/ui/static/vendor/LICENSES.txt"]
    assert told.get_all("Project-URL") is None
    assert links(told) == []
    assert "docs/python.md" in str(told.get_payload())


def test_with_a_home_links_are_absolute_and_of_this_version(tmp_path: Path) -> None:
    told = metadata(tmp_path, HOME)
    files = f"{HOME}/blob/v{jqmaster.__version__}/"
    found = links(told)
    assert len(found) > 15
    for link in found:
        assert link.startswith(files) and (ROOT / link.removeprefix(files).partition("#")[0]).exists(), link
    urls = dict(one.split(", ") for one in told.get_all("Project-URL", []))
    assert urls["Homepage"] == HOME
    assert urls["Changelog"] == f"{files}CHANGELOG.md"
