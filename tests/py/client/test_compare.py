"""docs/compare.md: its table counts the lines that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "compare.md").read_text()
NAMES = ("JQ", "Celery", "BullMQ")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
SECTIONS.pop("What it costs")  # bench/ measures that
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def programs(section: str) -> dict[str, list[tuple[str, str]]]:
    """Of each library its blocks of code, with their languages."""
    parts = re.split(rf"^\*\*({'|'.join(NAMES)})\*\*", SECTIONS[section], flags=re.MULTILINE)
    assert tuple(parts[1::2]) == NAMES, section
    return {name: BLOCK.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def lines(blocks: list[tuple[str, str]]) -> int:
    every = [line.strip() for _, code in blocks for line in code.splitlines()]
    return sum(1 for line in every if line and not line.startswith(("#", "//")))


def test_the_table_counts_what_is_there() -> None:
    rows = re.findall(r"^\| \[(.+?)]\((#.+?)\) \| (.*) \|$", PAGE, re.MULTILINE)
    by_anchor = {"#" + re.sub(r"[^\w -]", "", name).lower().replace(" ", "-"): name for name in SECTIONS}
    assert [by_anchor[anchor] for _, anchor, _ in rows] == list(SECTIONS)
    for _, anchor, cells in rows:
        counted = {name: lines(blocks) for name, blocks in programs(by_anchor[anchor]).items()}
        told = dict(zip(NAMES, cells.split(" | "), strict=True))
        assert {name: int(re.match(r"\d*", cell)[0] or 0) for name, cell in told.items()} == counted  # type: ignore[index]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_programs_of_jq_are_programs(section: str) -> None:
    for language, code in programs(section)["JQ"]:
        if language == "python":
            compile(code, section, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
