"""The list of faults fits the files: each stands where it says, once (tools/mutants.py puts them in)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "mutants.py"


def test_the_list_fits_the_files() -> None:
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = tool  # of which dataclasses ask
    spec.loader.exec_module(tool)
    mutants = tool.read()
    assert sum(mutant.file.endswith(".py") for mutant in mutants) > 130
    assert [(mutant.file, mutant.why, mutant.problem()) for mutant in mutants if mutant.problem()] == []
    named = {tests for mutant in mutants for tests in mutant.found_by if "::" in tests}
    gone = [tests for tests in named if f"def {tests.rpartition('::')[2].partition('[')[0]}(" not in source_of(tests)]
    assert [tests for tests in gone if "::Test" not in tests or tests.count("::") > 1] == []


def source_of(tests: str) -> str:
    return (TOOL.parents[1] / tests.partition("::")[0]).read_text()
