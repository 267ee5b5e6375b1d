"""Each surface has what the engine has: the fields of a job, and the operations.

Fields are described once, in jqmaster.wire.fields. What is not made from that is held against it here.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from bad_inputs import CASES
from heads import HEADS, errors, unnamed
from http_support import document
from jqmaster.cli import enqueue
from jqmaster.cli.options import Parser
from jqmaster.engine.options import JobOptions
from jqmaster.engine.replies import Job
from jqmaster.wire.fields import FIELDS, Field

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = (ROOT / "docs/protocol.md").read_text()
OPERATIONS = {script.stem for script in (ROOT / "scripts").glob("*.lua")}
BY_NAME = {field.name: field for field in FIELDS}
# What workers are told besides.
OF_ATTEMPTS = {"id", "token", "attempt", "retry_count"}
OF_SCHEDULES = {"schedule", "schedule_ms"}
OF_THE_CALL = {"durable"}  # told with a job, and not in its spec: how long its enqueueing waits


def lua(path: str, name: str) -> list[str]:
    """The words of a Lua constant: one text in pieces, or a list of texts."""
    source = (ROOT / "jqlua" / path).read_text()
    pieces = re.search(rf"local {name} = \{{?((?:\s*(?:\.\.|,)? ?\"[^\"]*\")+)", source)
    assert pieces, name
    return " ".join(re.findall(r'"([^"]*)"', pieces[1])).split()


def annotation(field: Field) -> str:
    """What the library takes for a field, as it is written."""
    words = ", ".join(repr(word.name) for word in field.words)
    special = {"unique": "str | bool | Callable[..., str]"}
    kind = {
        "name": "str", "integer": "int", "number": "float", "seconds": "Seconds", "moment": "datetime | float",
        "boolean": "bool", "choice": f"Literal[{words}]", "names": "Sequence[str]",
        "jobs": "Sequence[str | Reference]", "texts": "Mapping[str, str]",
    }[field.kind]  # fmt: skip
    return f"{special.get(field.name, kind)} | None"


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
        command = [sys.executable, ROOT / "tools/fields.py", "--check"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_the_engine_has_these(self) -> None:
        assert differences(lua("job/spec.lua", "FIELDS"), BY_NAME) == []
        checked = re.findall(r'field == "(\w+)"', (ROOT / "jqlua/job/spec.lua").read_text())
        assert differences(checked, BY_NAME) == []

    def test_the_engine_has_these_changed(self) -> None:
        assert differences(lua("life/change.lua", "FIELDS"), names(changed=True) | {"id"}) == []

    def test_the_engine_tells_workers_these(self) -> None:
        told = lua("job/record.lua", "TOLD_OPTIONS")
        assert differences(told, names(told=True, rare=True) | OF_SCHEDULES) == []

    def test_the_library_takes_these(self) -> None:
        assert differences(JobOptions.__annotations__, names() - {"name"} | OF_THE_CALL) == []

    @pytest.mark.parametrize("name", sorted(set(JobOptions.__annotations__) - OF_THE_CALL))
    def test_the_library_takes_them_as_they_are(self, name: str) -> None:
        taken = JobOptions.__annotations__[name]
        assert getattr(taken, "__forward_arg__", taken) == annotation(BY_NAME[name])

    def test_the_library_gives_functions_what_workers_are_told(self) -> None:
        told = names(told=True) | OF_ATTEMPTS | OF_SCHEDULES | {"argument"}
        assert differences(Job._fields, told) == []
        assert set(Job._field_defaults) == names(told=True, rare=True) | OF_SCHEDULES

    def test_what_needs_another_says_so_in_openapi(self) -> None:
        needs = {field.name: [field.needs] for field in FIELDS if field.needs}
        schemas = document()["components"]["schemas"]
        assert schemas["NewJob"]["dependentRequired"] == schemas["ScheduledJob"]["dependentRequired"] == needs

    def test_the_command_line_has_an_option_for_each(self) -> None:
        # Headers are of tracers, which do not use a shell.
        without = {field.name for field in FIELDS if not field.option}
        assert without == {"name", "headers"}
        commands = Parser().add_subparsers(parser_class=Parser)
        enqueue.add(commands)
        flags = set(commands.choices["enqueue"]._option_string_actions)
        assert {field.option for field in FIELDS if field.option} <= flags


def test_the_protocol_tells_each_operation() -> None:
    told = set(re.findall(r"`([a-z]+)(?: [^`]*)?`(?:\*\*)? ?(?:→|spec)", PROTOCOL))
    told |= set(re.findall(r"\*\*`(\w+)`", PROTOCOL))
    assert sorted(OPERATIONS - told) == []


def test_heads_of_scripts_name_the_errors_that_the_protocol_names() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:write|drain|read) \|.*\|([^|]*)\|$", PROTOCOL, re.MULTILINE)
    told = {name: errors(re.sub(r"per \w+ [^;]*;?|`", "", said)) for name, said in rows}
    assert told == HEADS


def test_heads_of_scripts_name_the_errors_that_are_met() -> None:
    assert unnamed((case.script, case.code, case.path) for case in CASES) == []


def test_the_library_has_a_call_for_each_operation() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster").glob("engine/*.py"))
    called = set(re.findall(r'self\.(?:call|page|_\w+)\(\s*"(\w+)"', sources))
    assert sorted(OPERATIONS - called) == []
