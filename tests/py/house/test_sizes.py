"""No file is longer than 400 lines, no function of the package than 50; the few that are may only become fewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MOST_LINES, MOST_OF_FUNCTION = 400, 50
FILES: set[str] = set()
FUNCTIONS: set[str] = set()


def files() -> Iterator[str]:
    for room in ("python/jqmaster", "jqlua", "scripts", "tests"):
        for path in (ROOT / room).rglob("*"):
            if path.suffix in (".py", ".lua"):
                yield str(path.relative_to(ROOT))


def functions() -> Iterator[tuple[str, int]]:
    """Each function of the package with its lines, without those of its decorators."""
    for name in files():
        if name.startswith("python/") and name.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / name).read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    assert node.end_lineno is not None
                    yield f"{name}:{node.name}", node.end_lineno - node.lineno + 1


def test_files_are_short() -> None:
    lengths = {name: len((ROOT / name).read_bytes().splitlines()) for name in files()}
    assert len(lengths) > 300
    assert {name for name, length in lengths.items() if length > MOST_LINES} == FILES, "those that became short go"


def test_functions_are_short() -> None:
    lengths = list(functions())
    assert len(lengths) > 1000
    assert {name for name, length in lengths if length > MOST_OF_FUNCTION} == FUNCTIONS, "those that became short go"
