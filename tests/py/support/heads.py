"""What the heads of scripts/*.lua say of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


def errors(said: str) -> set[str]:
    """Codes and paths that a text names, but for those that any operation may answer. Indexes are alike."""
    said = re.sub(r"\[\w+\]", "[i]", re.sub(r"\([^)]*\)", "", said))
    found = {" ".join(re.sub(r"hold\..*", "hold.id", error).split()) for error in said.split(",")}
    return {error for error in found if error and not error.startswith(("INVALID", "VERSION"))}


def _head(source: str) -> str:
    match = re.search(r"^-- Errors (.*(?:\n-- {8}.*)*)", source, re.MULTILINE)
    return re.sub(r"\n-- {8}", "", match[1]) if match else ""


HEADS = {script.stem: errors(_head(script.read_text())) for script in SCRIPTS.glob("*.lua")}


def unnamed(met: Iterable[tuple[str, str, str | None]]) -> list[str]:
    """Of errors, (script, code, path) each, those that the script's head does not name."""
    named = {(script, error) for script, code, path in met for error in errors(f"{code} {path or ''}")}
    return sorted(f"{script}: {error}" for script, error in named if error not in HEADS[script])
