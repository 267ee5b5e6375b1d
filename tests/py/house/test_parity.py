"""Each surface has the fields of a job, which are described once, in jqmaster.manifest.fields. What is not made from
that is held against it here."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from fields import files
from openapi import example

from jqmaster import JQ
from jqmaster.client import task
from jqmaster.engine import options
from jqmaster.engine.options import JobOptions
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.manifest import operations
from jqmaster.manifest.types import CONDITIONS

BY_NAME = {field.name: field for field in FIELDS}


def test_what_is_made_from_the_table_is_up_to_date() -> None:
    assert [path for path, text in files() if not path.exists() or path.read_text() != text] == [], "make generate"


@pytest.mark.parametrize("name", sorted(JobOptions.__annotations__))
def test_each_field_of_a_job_goes_with_its_call(name: str) -> None:
    type_ = BY_NAME[name].type
    sent = example(BY_NAME[name].of)
    given: Any = timedelta(seconds=sent) if type_ == "seconds" else tuple(sent) if type_ == "set<name>" else sent
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
        pytest.param(options.Changes, {*(one.name for one in FIELDS if one.changed), "argument"}, id="change"),
    ],
)
def test_programs_can_say_what_the_table_has(taken: Any, wanted: Iterable[str]) -> None:
    assert set(taken.__annotations__) == set(wanted)
