"""Each surface has what there is: the fields of a new job, and the operations.

Of the fields the engine is the measure, of the operations their table (test_operations.py compares the HTTP
API with it). A surface that leaves something out says so here, with the reason.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bad_inputs import JOB, UNIQUE
from http_support import document
from jqmaster.engine import options
from jqmaster.master.http.routes import BY_HAND
from jqmaster.wire.operations import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
SPEC = (ROOT / "jqlua/job/spec.lua").read_text()
PROTOCOL = (ROOT / "docs/protocol.md").read_text()
FORM = (ROOT / "python/jqmaster/ui/static/pages/enqueue.js").read_text()


def texts_of(name: str, source: str) -> set[str]:
    """The words of a Lua constant that is one text in pieces."""
    pieces = re.search(rf"local {name} = ((?:\s*(?:\.\. )?\"[^\"]*\")+)", source)
    assert pieces, name
    return set("".join(re.findall(r'"([^"]*)"', pieces[1])).split())


FIELDS = texts_of("FIELDS", SPEC)
SCRIPTS = {script.stem for script in (ROOT / "scripts").glob("*.lua")}
# Scripts that no request calls.
INSIDE = {
    "assign": "masters give jobs to the workers that they push to",
    "refuse": "masters give back what such a worker did not take",
    "tick": "whoever picks does what is due",
    "setup": "who connects does it",
    "migrate": "an upgrade, for who can reach Redis",
    "audit": "a check of the indexes, for who can reach Redis",
}


def in_protocol() -> set[str]:
    table = PROTOCOL.split("## 3. Enqueue")[1].split("| field |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.M)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def in_openapi() -> set[str]:
    return set(document()["components"]["schemas"]["NewJob"]["properties"]) - {"argument"}


def in_form() -> set[str]:
    fields = FORM.split("const OPTIONS = [")[1].split("];")[0]
    return set(re.findall(r"\{\s+name: '(\w+)'", fields)) | {"name", "queue"}


def on_command_line() -> set[str]:
    # A tag is an option of its own, given several times; headers are of tracers, which do not use a shell.
    told = subprocess.run(
        [sys.executable, "-c", "from jqmaster.cli import main; main()", "enqueue", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    flags = {flag.replace("-", "_") for flag in re.findall(r"^  --([a-z-]+)", told, re.M)}
    others = {"help", "request", "lines", "wait", "wait_timeout", "url", "redis", "namespace", "form", "json"}
    return {"tags" if flag == "tag" else flag for flag in flags - others} | {"name", "headers"}


def in_retried_forms() -> set[str]:
    """What "enqueue again" fills in, besides what is of that job alone."""
    copied = set(re.findall(r"'(\w+)'", FORM.split("const COPIED = [")[1].split("]")[0]))
    moments = {"delay", "run_at", "expires_in"}
    links = {"depends", "if_failed", "if_exists"}
    return copied | moments | links | {"name", "queue", "track"}


@pytest.mark.parametrize(
    "surface",
    [
        pytest.param(lambda: set(options.NAMES) | {"name"}, id="library"),
        pytest.param(in_protocol, id="protocol.md"),
        pytest.param(in_openapi, id="OpenAPI"),
        pytest.param(in_form, id="UI form"),
        pytest.param(in_retried_forms, id="enqueue again"),
        pytest.param(on_command_line, id="command line"),
        pytest.param(lambda: set(JOB) | set(UNIQUE), id="refusals"),
    ],
)
def test_each_field_of_a_job_is_known(surface: Callable[[], set[str]]) -> None:
    assert surface() == FIELDS


def test_each_script_has_an_operation_and_each_operation_a_script() -> None:
    assert {one.script for one in OPERATIONS.values()} - {""} == SCRIPTS - INSIDE.keys()


def test_the_protocol_tells_each_script() -> None:
    told = set(re.findall(r"`([a-z]+)(?: [^`]*)?`(?:\*\*)? ?(?:→|spec)", PROTOCOL))
    told |= set(re.findall(r"\*\*`(\w+)`", PROTOCOL))
    assert sorted(SCRIPTS - told) == []


def test_the_library_has_a_call_for_each_script() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster").glob("engine/*.py"))
    called = set(re.findall(r'self\.(?:call|page|_\w+)\(\s*"(\w+)"', sources))
    assert sorted(SCRIPTS - called) == []


def test_there_is_a_handler_for_what_the_table_leaves_to_it() -> None:
    assert set(BY_HAND) == {one.name for one in OPERATIONS.values() if one.by_hand}


def test_the_ui_asks_for_what_there_is() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster/ui/static").rglob("*.js"))
    asked = re.findall(r"\bapi\.(get|post|put|patch|delete)\(\s*(?:path`([^`]+)`|'([^']+)')", sources)
    assert len(asked) > 30
    for method, template, plain in asked:
        pattern = re.sub(r"\\\$\\\{.*?\\\}", r"[^/]+", re.escape(template or plain))
        found = [one.path for one in OPERATIONS.values() if one.method == method.upper()]
        assert any(re.fullmatch(pattern, path) for path in found), f"{method} {template or plain}"
