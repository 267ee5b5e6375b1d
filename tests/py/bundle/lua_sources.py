"""Small Lua sources for tests of the bundler."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jqmaster.bundle.build import BuildError, build
from servers import RedisServer


def write(root: Path, script: str, **modules: str) -> Path:
    """Write sources: the script ``op``, and modules, as ``base/clock``."""
    (root / "scripts").mkdir(exist_ok=True)
    (root / "jqlua").mkdir(exist_ok=True)
    if "@flags" not in script:
        script = "-- @flags write\n" + script
    if "@reply" not in script:
        script = "-- Title.\n--\n-- @reply nothing\n-- @errors INVALID\n-- @role admin\n" + script
    (root / "scripts" / "op.lua").write_text(script)
    for name, source in modules.items():
        path = root / "jqlua" / f"{name}.lua"
        path.parent.mkdir(exist_ok=True)
        path.write_text(inspect.cleandoc(source))
    return root


def refusal(root: Path, script: str, **sources: Any) -> str:
    with pytest.raises(BuildError) as caught:
        build(write(root, script, **sources))
    return str(caught.value)


@pytest.fixture
def run(tmp_path: Path, redis_server: RedisServer) -> Callable[..., Any]:
    """Build the script ``op``, run it in Redis; its reply."""

    def go(script: str, *arguments: object, **sources: Any) -> Any:
        root = write(tmp_path, script, **sources)
        with redis_server.client() as client:
            return client.execute_command("EVAL", build(root)["op"].source, 2, "{b}", "{b}:meta", *map(str, arguments))

    return go
