"""Writes dist/: wheel, sdist, bill of materials, and jq-scripts-<version>/, the built scripts to use without Python."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jqmaster import __version__
from jqmaster.bundle import build as luabuild

ROOT = Path(__file__).resolve().parents[1]


def write_scripts(directory: Path) -> Path:
    """Write ``jq-scripts-<version>/``, with a ``load.sh`` that knows what is in it; its path."""
    scripts = luabuild.build_cached()
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


def write_bill(directory: Path, wheel: Path, tools: Path) -> Path:
    """Write `jqmaster-<version>.cdx.json`: the package with what it needs, in the versions that are tested."""
    target = directory / f"jqmaster-{__version__}.cdx.json"
    pins = re.findall(r"^[\w.-]+==\S+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        home, constraints = Path(folder) / "venv", Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(pins))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        python = home / "bin" / "python"
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--constraint", constraints]
        subprocess.run([*install, f"{wheel}[server]"], check=True)
        options = ["--output-reproducible", "--pyproject", ROOT / "pyproject.toml", "--output-file", target]
        subprocess.run([tools / "cyclonedx-py", "environment", *options, python], check=True)
    bill = json.loads(target.read_text())
    bill["components"] += vendored()
    target.write_text(json.dumps(bill, indent=2) + "\n")
    return target


def vendored() -> list[dict[str, Any]]:
    """Components for the bill: what the web UI has copies of."""
    licences = (ROOT / "python/jqmaster/ui/static/vendor/LICENSES.txt").read_text()
    return [
        {
            "type": "library", "bom-ref": f"{name}@{version}", "name": name, "version": version,
            "purl": f"pkg:npm/{name}@{version}", "licenses": [{"license": {"id": licence}}],
        }
        for name, version, licence in _licensed(licences)
    ]  # fmt: skip


def _licensed(licences: str) -> Iterator[tuple[str, str, str]]:
    for part in re.split(r"^## ", licences, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        name, version = title.split()
        yield name, version, "MIT" if "without restriction" in text else "Apache-2.0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--tools", type=Path, help="where twine and cyclonedx-py are; without, nothing is checked")
    parser.add_argument("--scripts-only", action="store_true", help="no wheel, no sdist")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(write_scripts(options.out))
    if not options.scripts_only:
        # The development environment has setuptools: no second one is downloaded.
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(options.out), str(ROOT)]
        subprocess.run(command, check=True)
        if options.tools:
            made = [next(options.out.glob(f"jqmaster-{__version__}{end}")) for end in ("-*.whl", ".tar.gz")]
            subprocess.run([options.tools / "twine", "check", "--strict", *made], check=True)
            print(write_bill(options.out, made[0], options.tools))


if __name__ == "__main__":
    main()
