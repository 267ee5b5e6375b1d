"""Which rooms of jqlua/ may know of which: the lowest ones know of nothing above them."""

import re
from pathlib import Path

import pytest

JQLUA = Path(__file__).resolve().parents[2] / "jqlua"


@pytest.mark.parametrize(("room", "may_know"), [("base", set()), ("values", {"base"})])
def test_a_low_room_knows_of_nothing_above_it(room: str, may_know: set[str]) -> None:
    known = {
        (module.name, other)
        for module in (JQLUA / room).glob("*.lua")
        for other in re.findall(r'require "jqlua\.(\w+)\.', module.read_text())
        if other != room and other not in may_know
    }
    assert known == set()
