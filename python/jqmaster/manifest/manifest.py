"""All operations of this package: from the scripts of a checkout, from `operations.json` in a wheel."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jqmaster.manifest import heads
from jqmaster.manifest.contract import Argument, Error, Operation, Reply, Route

PACKAGE = Path(__file__).parents[1]


def read_scripts(directory: Path) -> dict[str, Operation]:
    """The operations whose scripts are in ``directory``. Raises heads.HeadError."""
    paths = sorted(directory.glob("*.lua"))
    operations = {path.stem: heads.read(path.stem, heads.comment_of(path.read_text("utf-8"))) for path in paths}
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


def from_json(entries: Mapping[str, Any]) -> dict[str, Operation]:
    """What ``to_json`` made."""
    return {name: _made(Operation, {"positions": (), **entry}) for name, entry in entries.items()}


_PARTS = {"arguments": Argument, "parameters": Argument, "replies": Reply, "errors": Error, "routes": Route}


def _made(kind: Any, entry: Mapping[str, Any]) -> Any:
    return kind(**{name: _value(name, value) for name, value in entry.items()})


def _value(name: str, value: Any) -> Any:
    if name in _PARTS:
        return tuple(_made(_PARTS[name], one) for one in value)
    if name == "restricted":
        return {argument: tuple(roles) for argument, roles in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _load() -> Mapping[str, Operation]:
    built = PACKAGE / "lua" / "operations.json"
    if built.is_file():
        return MappingProxyType(from_json(json.loads(built.read_text("utf-8"))))
    return MappingProxyType(read_scripts(PACKAGE.parents[1] / "scripts"))


@functools.cache
def operations() -> Mapping[str, Operation]:
    """All operations, by name."""
    return _load()
