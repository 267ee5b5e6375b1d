"""requirements.lock: everything that pyproject.toml asks for, within its ranges, each version with its hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^ ;]+)", LOCK, re.MULTILINE)}


def test_it_has_what_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(one for extra in extras.keys() - {"release"} for one in extras[extra])]
    requirements = {canonicalize_name(one.name): one for one in map(Requirement, asked) if one.name != "jqmaster"}
    assert requirements.keys() - PINS.keys() == set()
    assert {name: PINS[name] for name, one in requirements.items() if PINS[name] not in one.specifier} == {}


def test_each_version_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", LOCK).strip())
    assert len(entries) == len(PINS)
    assert [one for one in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}\s*\\?\s*(\n|$)", one)] == []
