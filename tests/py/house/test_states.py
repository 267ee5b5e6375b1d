"""The states of a job as docs/protocol.md tells them are those that the engine allows."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_tells_each_state_and_what_may_follow_it() -> None:
    source = (ROOT / "jqlua/job/states.lua").read_text()
    names = dict(re.findall(r'(\w) = "(\w+)"', source.split("local NAMES = {")[1].split("}")[0]))
    lines = source.split("CHANGES = [[\n\n")[1].split("]]")[0].splitlines()
    changes = {(names[line[0]], names[line[1]]) for line in lines if line[0] != "-"}
    section = (ROOT / "docs/protocol.md").read_text().split("\n## Jobs")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", section, re.M))
    told = {(before, after) for before, row in rows.items() for after in re.findall(r"`(\w+)`", row)}
    assert rows.keys() == set(names.values())
    assert {pair for pair in told if pair[1] in rows} == {
        (before, after) for before, after in changes if before != after
    }
