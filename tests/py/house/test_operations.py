"""What is made of the heads of scripts is up to date, and what is written beside them speaks of what there is."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import quick_yaml

import jqmaster
from cli_support import Said, call  # noqa: F401 (fixture)
from heads import unnamed
from jqmaster.bundle.build import builtin
from jqmaster.manifest import contract
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.routes import ROUTES
from refusal_table import CASES

ROOT = Path(__file__).resolve().parents[3]
OWN_WAY = {"enqueue", "pick", "finish", "head"}  # these remember what they have parsed
CODES = re.compile(r"\b(NOTFOUND|CONFLICT|LOST|FULL|CANCELLED)\b")  # INVALID and VERSION all scripts can say
GENERATE = runpy.run_path(str(ROOT / "tools/operations.py"))


def test_what_is_made_of_the_heads_is_up_to_date() -> None:
    assert [path for path, text in GENERATE["files"]() if path.read_text() != text] == [], "make generate"
    for one in (ROOT / "openapi").glob("*.yaml"):
        assert quick_yaml.read(one.read_text())["info"]["version"] == jqmaster.__version__, "make generate"


@pytest.mark.parametrize("name", operations())
def test_a_head_names_the_codes_that_its_script_can_say(name: str) -> None:
    one = operations()[name]
    said = " ".join([one.description, *(error.code for error in one.errors), *(reply.meaning for reply in one.replies)])
    assert set(CODES.findall(said)) == set(CODES.findall(builtin()[name].source.partition("\nlocal ")[2]))


@pytest.mark.parametrize("name", operations())
def test_a_script_takes_what_its_head_says(name: str) -> None:
    takes_spec = any("spec" in position for position in operations()[name].positions)
    assert (name in OWN_WAY) or takes_spec == ("(HEAD" in (ROOT / f"scripts/{name}.lua").read_text())


def test_the_command_line_calls_each_operation(call: Callable[..., Said]) -> None:
    """But for those that only servers call."""
    commands = set(re.findall(r"^│ (\w+) ", call("call", "--help").out, re.MULTILINE))
    assert commands == {name for name, one in operations().items() if contract.SERVER not in one.roles}


def test_heads_name_the_errors_that_are_met() -> None:
    assert unnamed((case.script, case.code, case.path) for case in CASES) == []


def test_roles_are_the_same_everywhere() -> None:
    of_ui = re.search(r"const ROLES = \[(.*)\];", (ROOT / "python/jqmaster/ui/static/admin.js").read_text())
    granted = operations()["grant"].named["roles"].of.of
    assert granted and granted.words == contract.ROLES
    assert of_ui and re.findall(r"'(\w+)'", of_ui[1]) == list(contract.ROLES)
    assert get_args(contract.Role) == contract.ROLES


def test_the_ui_asks_for_what_there_is() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster/ui/static").rglob("*.js"))
    calls = r"\b(?:api\.)?(get|post|put|patch|delete|only|toJob)\(\s*(?:path`([^`]+)`|'(/[^']+)')"
    asked: list[Any] = re.findall(calls, sources)
    assert len(asked) > 30
    for method, template, plain in asked:
        pattern = re.sub(r"\\\$\\\{.*?\\\}", r"[^/]+", re.escape(template or plain))
        found = [
            one.path for one in ROUTES if one.method == {"only": "GET", "toJob": "POST"}.get(method, method.upper())
        ]
        assert any(re.fullmatch(pattern, path) for path in found), f"{method} {template or plain}"
