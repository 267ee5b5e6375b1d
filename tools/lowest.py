"""Installs the lowest version of each dependency that pyproject.toml allows, and runs some tests with them.

``python tools/lowest.py [--keep] [TEST...]``. The environment is ``build/lowest``. What the tests themselves need is of
this environment's versions.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "lowest"
EXTRAS = ("cli", "worker", "server", "encryption", "otel")
TOOLS = (
    "hypothesis",
    "jsonschema",
    "jsonschema-rs",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "pyyaml",
    "requests",
)
# Something of all that the dependencies are used for.
TESTS = (
    "engine/test_engine.py", "engine/test_ended.py", "connection/test_redis_options.py", "server/test_http_jobs.py",
    "server/test_http_server.py", "server/test_metrics.py", "client/test_app_async.py", "worker/test_worker.py",
    "worker/test_tracing.py", "client/test_serializers.py",
)  # fmt: skip


def lowest() -> Iterator[str]:
    """Each requirement of the package and of its extras, with `==` for `>=`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ranges = [
        *project["dependencies"],
        *(one for extra in EXTRAS for one in extras[extra] if not one.startswith("jqmaster")),
    ]
    ranges += (one for one in extras["dev"] if one.startswith("opentelemetry-sdk"))  # of which the tests make use
    for one in ranges:
        if not re.match(r"[\w\[\]-]+>=[\d.]+(;|$)", one):
            raise SystemExit(f"{one}: expected a range that begins with >=")
        yield one.replace(">=", "==", 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="take the environment that is there")
    parser.add_argument("tests", nargs="*", default=[str(ROOT / "tests" / "py" / name) for name in TESTS])
    options = parser.parse_args()
    python = HOME / "bin" / "python"
    if not (options.keep and python.exists()):
        shutil.rmtree(HOME, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        wanted = [*lowest(), *(f"{name}=={version(name)}" for name in TOOLS)]
        print("\n".join(wanted))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *wanted], check=True)
        subprocess.run([*install, "setuptools", "wheel"], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", ROOT], check=True)
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options.tests], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
