"""What is signed as a master's: the vectors of tests/protocol/pushes, with our worker's check and with those for
others in examples/."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jqmaster.server import signing

ROOT = Path(__file__).parents[3]
VECTORS = json.loads((ROOT / "tests/protocol/pushes/signatures.json").read_text())["vectors"]
EXAMPLE = (ROOT / "examples/any_worker.py").read_text()
EACH = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["case"])
FIRST, SECOND = signing.new_secret(), signing.new_secret()


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@EACH
def test_our_worker(vector: dict[str, Any]) -> None:
    refusal = signing.refusal(vector["secrets"], raw(vector["headers"]), bytes.fromhex(vector["body"]), vector["now"])
    assert (refusal is None) == vector["right"]


@EACH
def test_in_python(vector: dict[str, Any]) -> None:
    names: dict[str, Any] = {}
    [check] = re.findall(r"^SEEN: .*?^    return True\n", EXAMPLE, re.DOTALL | re.MULTILINE)
    exec("import base64, hmac, time\n" + check, names)
    body = bytes.fromhex(vector["body"])
    taken = [names["is_masters"](vector["secrets"], vector["headers"], body, vector["now"]) for _ in range(2)]
    assert taken == [vector["right"], False]


def test_in_javascript(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    told = "import { readFileSync } from 'node:fs';\n"
    asks = """
const { vectors } = JSON.parse(readFileSync(process.argv[2]));
for (const { secrets, headers, body, now } of vectors) {
  const taken = [1, 2].map(() => isMasters(secrets, headers, Buffer.from(body, 'hex'), now));
  console.log(JSON.stringify(taken));
  seen.clear();
}
"""
    (tmp_path / "check.mjs").write_text(told + (ROOT / "examples/node/pushes.js").read_text() + asks)
    command = ["node", tmp_path / "check.mjs", ROOT / "tests/protocol/pushes/signatures.json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert [json.loads(line) for line in answer.stdout.splitlines()] == [[one["right"], False] for one in VECTORS]


@pytest.mark.parametrize("text", ["", "whsec_", "x" * 38, "whsec_" + "A" * 28, "whsec_é"])
def test_what_is_no_secret_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        signing.secrets_of(text)
    assert "AAAA" not in str(refused.value) and "xxx" not in str(refused.value)
    assert signing.secrets_of(f"{FIRST}, {SECOND}") == (FIRST, SECOND)
