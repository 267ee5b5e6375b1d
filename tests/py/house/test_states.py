"""The states of a job as docs/protocol.md tells them, beside those that the engine allows."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/protocol.md").read_text()
SOURCE = (ROOT / "jqlua/job/states.lua").read_text()


def names() -> dict[str, str]:
    """The clients' name of each state, by its letter."""
    table = SOURCE.split("local NAMES = {")[1].split("}")[0]
    return dict(re.findall(r'(\w) = "(\w+)"', table))


def changes() -> set[tuple[str, str]]:
    """Which state may follow which, as clients see it."""
    named = names()
    lines = SOURCE.split("CHANGES = [[\n\n")[1].split("]]")[0].splitlines()
    pairs = {(named[line[0]], named[line[1]]) for line in lines if line[0] != "-"}
    return {(before, after) for before, after in pairs if before != after}


def documented() -> dict[str, set[str]]:
    """The table of states: each with those that come next."""
    section = PAGE.split("\n## Jobs")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", section, re.M)
    return {state: set(re.findall(r"`(\w+)`", after)) & set(names().values()) for state, after in rows}


def test_the_page_lists_all_states() -> None:
    assert set(documented()) == set(names().values())


def test_the_page_tells_each_change() -> None:
    told = {(before, after) for before, states in documented().items() for after in states}
    assert told == changes()
