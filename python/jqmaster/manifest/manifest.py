"""All operations of this package: the heads of its scripts, of those of a checkout or those built into a wheel."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from jqmaster.manifest import heads
from jqmaster.manifest.contract import Operation

PACKAGE = Path(__file__).parents[1]


def read_scripts(directory: Path) -> dict[str, Operation]:
    """The operations whose scripts are in ``directory``. Raises ValueError."""
    operations: dict[str, Operation] = {}
    for path in sorted(directory.glob("*.lua")):
        with path.open(encoding="utf-8") as lines:
            if comment := heads.comment_of(lines):  # which the library has not
                operations[path.stem] = heads.read(path.stem, comment)
    return operations


@functools.cache
def operations() -> Mapping[str, Operation]:
    """All operations, by name."""
    built = PACKAGE / "lua"
    return MappingProxyType(read_scripts(built if built.is_dir() else PACKAGE.parents[1] / "scripts"))
