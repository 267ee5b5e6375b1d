"""Each surface has what the engine has: the fields of a new job, and the operations.

The engine is the measure. A surface that leaves something out says so here, with the reason.
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
OF_THE_CALL = {"durable"}  # told with a job, and not in its spec: how long its enqueueing waits
OPERATIONS = {script.stem for script in (ROOT / "scripts").glob("*.lua")}


def in_protocol() -> set[str]:
    table = PROTOCOL.split("## 3. Enqueue")[1].split("| field |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.M)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def in_openapi() -> set[str]:
    return set(document()["components"]["schemas"]["NewJob"]["properties"]) - {"argument"} - OF_THE_CALL


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
        pytest.param(lambda: set(options.NAMES) - OF_THE_CALL | {"name"}, id="library"),
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


def test_the_protocol_tells_each_operation() -> None:
    told = set(re.findall(r"`([a-z]+)(?: [^`]*)?`(?:\*\*)? ?(?:→|spec)", PROTOCOL))
    told |= set(re.findall(r"\*\*`(\w+)`", PROTOCOL))
    assert sorted(OPERATIONS - told) == []


def test_the_library_has_a_call_for_each_operation() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster").glob("engine/*.py"))
    called = set(re.findall(r'self\.(?:call|page|_\w+)\(\s*"(\w+)"', sources))
    assert sorted(OPERATIONS - called) == []
