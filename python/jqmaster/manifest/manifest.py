"""All operations of this package: the heads of its scripts, of those of a checkout or those built into a wheel."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jqmaster.manifest import heads
from jqmaster.manifest.contract import Operation

PACKAGE = Path(__file__).parents[1]


def read_scripts(directory: Path) -> dict[str, Operation]:
    """The operations whose scripts are in ``directory``. Raises heads.HeadError."""
    operations: dict[str, Operation] = {}
    for path in sorted(directory.glob("*.lua")):
        with path.open(encoding="utf-8") as lines:
            if comment := heads.comment_of(lines):  # which the library has not
                operations[path.stem] = heads.read(path.stem, comment)
    heads.check_paths(operations.values())
    return operations


def to_json(operations: Iterable[Operation]) -> dict[str, Any]:
    """Operations by name, as JSON has them. What says nothing is left out."""
    return {one.name: _short(asdict(one)) for one in operations}


def written(names: Iterable[str]) -> str:
    """Operations as they stand in `operations.json` and, compressed, in Redis."""
    return json.dumps(to_json(operations()[name] for name in sorted(names) if name in operations()))


def _short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _short(one) for key, one in value.items() if _says(key, one)}
    return [_short(one) for one in value] if isinstance(value, list | tuple) else value


def _says(name: str, value: Any) -> bool:
    return value is not None and value not in ("", (), {}) and (value is not False or name == "default")


@functools.cache
def operations() -> Mapping[str, Operation]:
    """All operations, by name."""
    built = PACKAGE / "lua"
    return MappingProxyType(read_scripts(built if built.is_dir() else PACKAGE.parents[1] / "scripts"))
