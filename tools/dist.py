"""Writes dist/jq-scripts-<version>/: the built scripts, with a loader that needs only redis-cli."""

from __future__ import annotations

import argparse
import hashlib
import shutil
from pathlib import Path

from jqmaster.bundle import build

ROOT = Path(__file__).resolve().parents[1]


def write_scripts(directory: Path) -> Path:
    """What it wrote."""
    scripts = build.build_cached()
    assert scripts.library is not None
    version = build.version_of(scripts)
    target = directory / f"jq-scripts-{version}"
    shutil.rmtree(target, ignore_errors=True)
    build.dump(scripts, target)
    shutil.copy(ROOT / "python" / "jqmaster" / "engine" / "manifest.lua", target)
    text = (ROOT / "tools" / "load.sh").read_text()
    for place, what in {
        "VERSION": version,
        "SCRIPTS": " ".join(f"{script.name}:{script.sha}:{script.flags}" for script in scripts.values()),
        "LIBRARY": scripts.library.name,
        "FUNCTIONS": " ".join(sorted(scripts.library.functions)),
        "OPERATIONS": hashlib.sha1((target / "operations.json").read_bytes()).hexdigest(),
    }.items():
        text = text.replace(f"@{place}@", what)
    loader = target / "load.sh"
    loader.write_text(text)
    loader.chmod(0o755)
    return target


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    print(write_scripts(parser.parse_args().out))
