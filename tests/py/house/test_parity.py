"""Each surface has the fields of a job, which are described once, in jqmaster.manifest.fields. What is not made from
that is held against it here."""

from datetime import timedelta
from typing import Any

import msgpack
import pytest
from fields import files
from openapi import example

from jqmaster import JQ
from jqmaster.engine.calling import pack
from jqmaster.engine.options import JobOptions
from jqmaster.manifest.fields import FIELDS

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
        assert msgpack.unpackb(pack(made.spec()))[name] == sent
