"""Each surface has what the engine has: the fields of a job, and the operations.

Fields are described once, in jqmaster.manifest.fields. What is not made from that is held against it here.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from fields import files
from kinds import KINDS

from bad_inputs import CASES
from cli_support import Said, call  # noqa: F401 (fixtures)
from heads import HEADS, errors, unnamed
from http_support import document
from jqmaster import JQ, Handle
from jqmaster.client import task
from jqmaster.engine import options
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import JobOptions
from jqmaster.manifest import manifest, parts
from jqmaster.manifest import operation as table
from jqmaster.manifest.contract import SERVER
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.operations import OPERATIONS as TABLE

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = (ROOT / "docs/protocol.md").read_text()
OPERATIONS = {script.stem for script in (ROOT / "scripts").glob("*.lua")}
BY_NAME = {field.name: field for field in FIELDS}
OF_THE_CALL = {"durable"}  # told with a job, and not in its spec: how long its enqueueing waits


def lua(path: str, name: str) -> list[str]:
    """The words of a Lua constant: one text in pieces, or a list of texts."""
    source = (ROOT / "jqlua" / path).read_text()
    pieces = re.search(rf"local {name} = \{{?((?:\s*(?:\.\.|,)? ?\"[^\"]*\")+)", source)
    assert pieces, name
    return " ".join(re.findall(r'"([^"]*)"', pieces[1])).split()


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
        assert [path for path, text in files() if not path.exists() or path.read_text() != text] == [], "make generate"

    def test_the_engine_has_these(self) -> None:
        checked = re.findall(r'field == "(\w+)"', (ROOT / "jqlua/job/jobspec.lua").read_text())
        assert differences(checked, BY_NAME) == []

    def test_the_engine_has_these_changed(self) -> None:
        assert differences(lua("life/change.lua", "FIELDS"), names(changed=True) | {"id"}) == []

    def test_what_needs_another_says_so_in_openapi(self) -> None:
        needs = {field.name: [field.needs] for field in FIELDS if field.needs}
        schemas = document()["components"]["schemas"]
        assert schemas["NewJob"]["dependentRequired"] == schemas["ScheduledJob"]["dependentRequired"] == needs


def test_the_command_line_calls_each_operation(call: Callable[..., Said]) -> None:
    """But for those that only servers call."""
    said = call("call", "--help").out
    commands = set(re.findall(r"^│ (\w+) ", said, re.MULTILINE))
    of_servers = {name for name, one in manifest.operations().items() if SERVER in one.roles}
    assert differences(commands, OPERATIONS - of_servers) == []


def test_the_protocol_tells_each_operation() -> None:
    told = set(re.findall(r"`([a-z]+)(?: [^`]*)?`(?:\*\*)? ?(?:→|spec)", PROTOCOL))
    told |= set(re.findall(r"\*\*`(\w+)`", PROTOCOL))
    assert sorted(OPERATIONS - told) == [], "a paragraph of docs/protocol.md tells each"


def test_heads_of_scripts_name_the_errors_that_the_protocol_names() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:write|drain|read) \|.*\|([^|]*)\|$", PROTOCOL, re.MULTILINE)
    told = {name: errors(re.sub(r"per \w+ [^;]*;?|`", "", said)) for name, said in rows}
    assert told == HEADS, "section 19 as `Errors` in the script's head says"


def test_heads_of_scripts_name_the_errors_that_are_met() -> None:
    assert unnamed((case.script, case.code, case.path) for case in CASES) == []


def test_the_library_has_a_call_for_each_operation() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "python/jqmaster").glob("engine/*.py"))
    called = set(re.findall(r'self\.(?:call|page|_\w+)\(\s*"(\w+)"', sources))
    assert sorted(OPERATIONS - called) == [], "a method in engine/ calls each"


# -- JQ -------------------------------------------------------------------------------------------

# What programs do not ask through `JQ`.
NOT_OF_JQ = {
    **dict.fromkeys(
        ("register", "unregister", "heartbeat", "finish", "pick", "release"), "workers do it, which `JQ.worker` makes"
    ),
    **dict.fromkeys(
        ("overview", "overview.events", "alive", "health", "metrics", "openapi", "openapi.worker"),
        "a master tells it of itself",
    ),
    **dict.fromkeys(("session", "session.begin", "session.end"), "browsers log in; programs show a key"),
}
# Operations that the library asks for without the engine's typed methods, and where.
BY_TRANSPORT = {
    "enqueue": "aenqueue", "enqueue.many": "aenqueue_many", "result": "aresult", "watch": "ajoin",
    "track.events": "aevents",
    "trends": "atrends", "changes": "achanges", "events": "aevents", "export": "aexport", "import": "aimport_records",
}  # fmt: skip
# Operations of one script that differ by an argument alone, and what they are where they are called.
SAME = {
    "search": "search",
    "discard.queue": "discard_where", "kick.queue": "kick_queue", "config.set": "config", "stats.series": "series",
    "schedule.run": "run_schedule", "kick.worker": "kick_worker", "bulk": "begin_bulk",
    "bulk.stop": "stop_bulk",
    "ranking": "ranking",
}  # fmt: skip


def asked(kind: type) -> dict[str, set[str]]:
    """Of each method for coroutines, the engine's methods that it names."""
    known = {name for name in dir(Operations) if not name.startswith("_")} - {"call", "call_durably"}
    found = {}
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("a") and inspect.isfunction(method):
            tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
            found[name] = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & known
    return found


def test_programs_reach_each_operation() -> None:
    by_method = {kind: asked(kind) for kind in (JQ, Handle)}
    reached = {one: (kind, name) for kind, found in by_method.items() for name, ones in found.items() for one in ones}
    missing = []
    for operation in TABLE.values():
        if operation.name in NOT_OF_JQ:
            continue
        if operation.name in BY_TRANSPORT:
            name = BY_TRANSPORT[operation.name]
            kind = JQ if hasattr(JQ, name) else Handle
        else:
            kind, name = reached.get(SAME.get(operation.name, operation.script), (JQ, "-"))
        # And both ways.
        if not (hasattr(kind, name) and hasattr(kind, name.removeprefix("a"))):
            missing.append(operation.name)
    assert missing == [], "methods `aname` and `name = plain(aname)` of JQ or Handle, or why not in NOT_OF_JQ"
    assert {*NOT_OF_JQ, *BY_TRANSPORT, *SAME} <= TABLE.keys()


def test_roles_are_the_same_everywhere() -> None:
    of_lua = re.search(r'local ROLES = "(.*)"', (ROOT / "jqlua/access/apikeys.lua").read_text())
    of_ui = re.search(r"const ROLES = \[(.*)\];", (ROOT / "python/jqmaster/ui/static/pages/keys.js").read_text())
    assert of_lua and of_lua[1].split() == list(table.ROLES)
    assert of_ui and re.findall(r"'(\w+)'", of_ui[1]) == list(table.ROLES)
    assert get_args(table.Role) == table.ROLES


def test_an_exception_is_none_once_programs_can_ask() -> None:
    reached = {one for kind in (JQ, Handle) for ones in asked(kind).values() for one in ones}
    assert reached & {name.partition(".")[0] for name in NOT_OF_JQ} == set()


@pytest.mark.parametrize("name", sorted(JobOptions.__annotations__))
def test_each_field_of_a_job_goes_with_its_call(name: str) -> None:
    kind = BY_NAME[name].kind if name in BY_NAME else "integer"
    sent = BY_NAME[name].words[0].name if kind == "choice" else KINDS[kind].good[0]
    given: Any = timedelta(seconds=sent) if kind == "seconds" else tuple(sent) if kind == "names" else sent
    jq = JQ()
    for made in (
        jq.call("a", None, **{name: given}),
        jq.task("a").options(**{name: given}).job(),
        jq.job(name="a", **{name: given})(lambda: None).job(),
        JQ(**{name: given}).call("a"),
    ):
        assert made.spec()[name] == sent


def of(fields: Iterable[table.Field], place: str = "") -> set[str]:
    """Names of fields, as the script has them."""
    return {one.to.rpartition(".")[2] for one in fields if one.place == place or not place}


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        pytest.param(options.Where, of(parts.CONDITIONS), id="where"),
        pytest.param(options.Limits, of(parts.LIMITS) - {"match"}, id="limits"),
        pytest.param(options.QueueChanges, of(parts.QUEUE_CHANGES), id="queue"),
        pytest.param(options.Period, of(parts.PERIOD) - {"by"}, id="period"),
        pytest.param(task.When, of(parts.RECURRING) - {"job", "argument"}, id="schedule"),
        pytest.param(options.Changes, {*names(changed=True), "argument"}, id="change"),
    ],
)
def test_programs_can_say_what_the_table_has(taken: Any, wanted: set[str]) -> None:
    assert differences({**taken.__annotations__}, wanted) == []
