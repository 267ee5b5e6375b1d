"""No file is longer than 400 lines, no function of the package than 50."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("python/jqmaster", "jqlua", "scripts", "tests")
FILES = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".lua")]
FILES += (ROOT / "tools").glob("*.py")


def test_files_are_short() -> None:
    assert len(FILES) > 300
    assert [path for path in FILES if len(path.read_bytes().splitlines()) > 400] == []


def test_functions_are_short() -> None:
    package = [path for path in FILES if path.is_relative_to(ROOT / ROOMS[0]) and path.suffix == ".py"]
    found = [
        (path.name, node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path in package
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(found) > 1000
    assert [one for one in found if one[2] > 50] == []
