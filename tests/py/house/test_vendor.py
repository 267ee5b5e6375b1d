"""The web UI's vendored libraries are what the bundler writes, from tools/js/package.json, with their licences."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VENDOR = ROOT / "python" / "jqmaster" / "ui" / "static" / "vendor"
PACKAGES = ROOT / "tools" / "js" / "node_modules"


@pytest.mark.skipif(shutil.which("node") is None or not PACKAGES.exists(), reason="no node_modules: make setup")
def test_vendored_files_are_what_the_bundler_writes(tmp_path: Path) -> None:
    subprocess.run(["node", ROOT / "tools" / "js" / "vendor.mjs", tmp_path], check=True, timeout=120)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in VENDOR.iterdir()}
    assert kept == written, "run: make vendor"
    for name in ("preact", "htm", "uplot"):
        licence = (PACKAGES / name / "LICENSE").read_text().strip()
        assert licence in kept["LICENSES.txt"].decode()
