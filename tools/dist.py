"""Writes dist/: the wheel, the sdist, and jq-scripts-<version>/, the built scripts for use without Python."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from jqmaster.bundle import build as luabuild

ROOT = Path(__file__).resolve().parents[1]


def write_scripts(directory: Path) -> Path:
    """Write ``jq-scripts-<version>/``, with a ``load.sh`` that knows what is in it; its path."""
    scripts = luabuild.build(ROOT)
    version = luabuild.version_of(scripts)
    target = directory / f"jq-scripts-{version}"
    shutil.rmtree(target, ignore_errors=True)
    luabuild.dump(scripts, target)
    shutil.copy(ROOT / "python" / "jqmaster" / "engine" / "manifest.lua", target)
    entries = " ".join(f"{script.name}:{script.sha}:{script.flags}" for script in scripts.values())
    text = (ROOT / "tools" / "load.sh").read_text()
    assert scripts.library is not None
    for place, what in (
        ("VERSION", version), ("SCRIPTS", entries), ("LIBRARY", scripts.library.name),
        ("FUNCTIONS", " ".join(sorted(scripts.library.functions))),
    ):  # fmt: skip
        text = text.replace(f"@{place}@", what)
    loader = target / "load.sh"
    loader.write_text(text)
    loader.chmod(0o755)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--scripts-only", action="store_true", help="no wheel, no sdist")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(write_scripts(options.out))
    if not options.scripts_only:
        # The development environment has setuptools: no second one is downloaded.
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(options.out), str(ROOT)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
