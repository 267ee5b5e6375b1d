"""Each surface has the fields of a job, which are described once, in jqmaster.manifest.fields. What is not made from
that is held against it here."""

import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fields import files
from kinds import KINDS

from http_support import document
from jqmaster import JQ
from jqmaster.client import task
from jqmaster.engine import options
from jqmaster.engine.options import JobOptions
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.manifest import operations
from jqmaster.manifest.types import CONDITIONS

ROOT = Path(__file__).resolve().parents[3]
BY_NAME = {field.name: field for field in FIELDS}


def differences(there: Iterable[str], wanted: Iterable[str]) -> list[str]:
    there, wanted = set(there), set(wanted)
    return [f"{name} is missing" for name in sorted(wanted - there)] + [
        f"{name} is not in the table" for name in sorted(there - wanted)
    ]


def names(**like: object) -> set[str]:
    """Of the fields that are so."""
    return {one.name for one in FIELDS if all(getattr(one, key) == value for key, value in like.items())}


class TestFields:
    def test_what_is_made_from_the_table_is_up_to_date(self) -> None:
        assert [path for path, text in files() if not path.exists() or path.read_text() != text] == [], "make generate"

    def test_the_engine_has_these_changed(self) -> None:
        table = re.search(r"local FIELDS = \{.*?\n\}", (ROOT / "jqlua/life/change.lua").read_text(), re.DOTALL)
        assert table and differences(re.findall(r"(\w+) = [j{]", table[0])[1:], names(changed=True) | {"id"}) == []

    def test_what_needs_another_says_so_in_openapi(self) -> None:
        needs = {field.name: [field.needs] for field in FIELDS if field.needs}
        schemas = document()["components"]["schemas"]
        assert schemas["NewJob"]["dependentRequired"] == schemas["ScheduledJob"]["dependentRequired"] == needs


@pytest.mark.parametrize("name", sorted(JobOptions.__annotations__))
def test_each_field_of_a_job_goes_with_its_call(name: str) -> None:
    kind = BY_NAME[name].kind if name in BY_NAME else "integer"
    sent = BY_NAME[name].words[0].name if kind == "choice" else KINDS[kind].good[0]
    given: Any = timedelta(seconds=sent) if kind == "seconds" else tuple(sent) if kind == "names" else sent
    jq = JQ()
    for made in (
        jq.new_job("a", None, **{name: given}),
        jq.task("a").options(**{name: given}).job(),
        jq.job(name="a", **{name: given})(lambda: None).job(),
        JQ(**{name: given}).new_job("a"),
    ):
        assert made.spec()[name] == sent


def of(operation: str) -> set[str]:
    """The names of its arguments but for those that say which, or where a listing goes on."""
    left = ("id", "match", "by", "job", "shared", "argument", "run", "actor")
    return {one.name for one in operations()[operation].arguments} - set(left)


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        pytest.param(options.Where, CONDITIONS, id="where"),
        pytest.param(options.Limits, of("constrain") | {"by"}, id="limits"),
        pytest.param(task.When, of("schedule"), id="schedule"),
        pytest.param(options.Changes, {*names(changed=True), "argument"}, id="change"),
    ],
)
def test_programs_can_say_what_the_table_has(taken: Any, wanted: set[str]) -> None:
    assert differences({**taken.__annotations__}, wanted) == []
