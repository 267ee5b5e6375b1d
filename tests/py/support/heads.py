"""What the heads of scripts/*.lua say of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jqmaster.manifest.manifest import operations


def _alike(code: str, path: str) -> str:
    """Indexes are alike, and names within `hold`."""
    path = re.sub(r"hold[.].*", "hold.id", re.sub(r"\[\w+\]", "[i]", path))
    return f"{code} {path}".strip()


HEADS = {
    name: {_alike(error.code, error.path) for error in one.errors if error.code not in ("INVALID", "VERSION")}
    for name, one in operations().items()
}


def unnamed(met: Iterable[tuple[str, str, str | None]]) -> list[str]:
    """Of errors, (script, code, path) each, those that the script's head does not name, but for those that any
    operation may answer."""
    named = {(script, _alike(code, path or "")) for script, code, path in met if code not in ("INVALID", "VERSION")}
    return sorted(f"{script}: {error}" for script, error in named if error not in HEADS[script])
