"""What is asked often is told quickly: by processes that import little."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from jqmaster.bundle.build import builtin, version_of

LISTED = "import json, sys; sys.argv[1:] and __import__('jqmaster.cli').cli.main(); print(json.dumps([*sys.modules]))"


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        ((), ("jqmaster.client", "redis", "msgpack", "asyncio")),
        (("--version",), ("jqmaster.client", "redis", "msgpack", "asyncio", "argparse", "logging")),
    ],
)
def test_an_import_and_the_version_bring_little(arguments: tuple[str, ...], unneeded: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", f"import jqmaster\n{LISTED}", *arguments]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert set(json.loads(output[-1])).isdisjoint(unneeded)
    built = builtin()
    assert built.library
    line = f"jqmaster {version_of(built)} (scripts, functions {built.library.name})"
    assert output[:-1] == [line] * len(arguments)
