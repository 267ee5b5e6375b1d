"""What a line describes; the UI's reading of the same is held to the same table by tests/js/test_queryline.mjs."""

import json
from pathlib import Path
from typing import Any

import pytest

from jqmaster.engine.queryline import where_of
from jqmaster.errors import Invalid

CASES = json.loads((Path(__file__).resolve().parents[2] / "js/querylines.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["line"] for case in CASES])
def test_a_line_describes_jobs(case: dict[str, Any]) -> None:
    if "where" in case:
        assert where_of(case["line"], 1_700_000_000_000) == case["where"]
        return
    with pytest.raises(Invalid) as refused:
        where_of(case["line"], 1_700_000_000_000)
    assert (refused.value.path, refused.value.message.removeprefix("where: ")) == ("where", case["problem"])
