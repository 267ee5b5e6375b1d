"""What heads of scripts say of answers, beside what the built scripts can say."""

import re

import pytest

from jqmaster.bundle.built import builtin
from jqmaster.manifest.manifest import operations

# INVALID and VERSION are all scripts' to say.
CODES = re.compile(r"\b(NOTFOUND|CONFLICT|LOST|FULL|CANCELLED)\b")


@pytest.mark.parametrize("name", operations())
def test_a_head_names_the_codes_that_its_script_can_say(name: str) -> None:
    one = operations()[name]
    said = " ".join([one.description, *(error.code for error in one.errors), *(reply.meaning for reply in one.replies)])
    assert set(CODES.findall(said)) == set(CODES.findall(builtin()[name].source))
