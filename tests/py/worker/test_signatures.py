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
from jqmaster.server.signing import Verifier

ROOT = Path(__file__).parents[3]
VECTORS = json.loads((ROOT / "tests/protocol/pushes/signatures.json").read_text())["vectors"]
EXAMPLE = (ROOT / "examples/any_worker.py").read_text()
EACH = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["case"])
FIRST, SECOND = signing.new_secret(), signing.new_secret()


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@EACH
def test_our_worker(vector: dict[str, Any]) -> None:
    verifier = Verifier(vector["secrets"], lambda: vector["now"])
    body = bytes.fromhex(vector["body"])
    assert (verifier.refusal(raw(vector["headers"]), body) is None) == vector["right"]
    assert verifier.refusal(raw(vector["headers"]), body)  # nothing is taken twice


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


def push(verifier: Verifier, secret: str, push_id: str, now: float) -> str | None:
    return verifier.refusal(raw(signing.signed([secret], push_id, b"body", now)), b"body")


def test_a_secret_is_changed_with_both_valid_for_a_while() -> None:
    now = 1e9
    for old, new in (([FIRST], [FIRST]), ([FIRST], [SECOND, FIRST]), ([SECOND], [SECOND, FIRST])):
        assert push(Verifier(new, lambda: now), old[0], "a", now) is None
    assert push(Verifier([SECOND], lambda: now), FIRST, "a", now)


def test_what_was_taken_is_remembered_for_as_long_as_it_could_come_again() -> None:
    now = 1e9
    verifier = Verifier([FIRST], lambda: now)
    begin = now
    ahead = raw(signing.signed([FIRST], "ahead", b"", begin + signing.TOLERANCE_S))
    assert verifier.refusal(ahead, b"") is None
    for now in range(int(begin), int(begin) + 3 * signing.TOLERANCE_S, 20):
        assert verifier.refusal(ahead, b"")
        assert push(verifier, FIRST, str(now), now) is None
    assert len(verifier._seen) <= 2 * signing.TOLERANCE_S / 20 + 1


@pytest.mark.parametrize("text", ["", "whsec_", "x" * 38, "whsec_" + "A" * 28, "whsec_é"])
def test_what_is_no_secret_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        signing.secrets_of(text)
    assert "AAAA" not in str(refused.value) and "xxx" not in str(refused.value)
    assert signing.secrets_of(f"{FIRST}, {SECOND}") == (FIRST, SECOND)
