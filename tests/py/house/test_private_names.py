"""Private names of other libraries may go with any release of theirs: few are used, each with a reason."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import jqmaster

PACKAGE = Path(jqmaster.__file__).parent
MOST = 8

# Names with an underscore that their libraries document: of named tuples; of os and sys.
DOCUMENTED = {"_replace", "_fields", "_field_defaults", "_make", "_asdict", "_exit", "_current_frames"}
ALLOWED: dict[tuple[str, str], str] = {}
OF_PYTHON = {"builtins", "typing", "abc", "enum", "collections.abc"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED


def made(tree: ast.AST) -> Iterator[str]:
    """Names that are given to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            if isinstance(node.ctx, ast.Store):
                yield node.attr


def inherited(file: str) -> set[str]:
    """Private names that classes of a module have of other libraries."""
    module = importlib.import_module(f"jqmaster.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__"))
    kinds = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    bases = {base for kind in kinds for base in kind.__mro__ if not base.__module__.startswith("jqmaster")}
    return {name for base in bases if base.__module__ not in OF_PYTHON for name in vars(base) if is_private(name)}


def used() -> Iterator[tuple[str, str]]:
    """(file, name) of each private name that nobody made here, or that a class here has of another library."""
    trees = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    own = {name for tree in trees.values() for name in made(tree)}
    for file, tree in trees.items():
        if file.rpartition("/")[2] == "__main__.py":
            continue
        theirs = inherited(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                if node.attr not in own or node.attr in theirs:
                    yield file, node.attr
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in theirs:
                yield file, node.name
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "jqmaster":
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                yield from ((file, name) for name in names if is_private(name))


def test_private_names_of_libraries_have_a_reason_each() -> None:
    assert set(used()) == set(ALLOWED)
    assert len(ALLOWED) <= MOST
