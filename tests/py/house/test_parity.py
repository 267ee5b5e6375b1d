"""Each surface has what the engine has: the fields of a job, and the operations.

Fields are described once, in jqmaster.manifest.fields. What is not made from that is held against it here.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from fields import files
from kinds import KINDS
from operations_code import COMMANDS, needed

from bad_inputs import CASES
from cli_support import Cli, call, straight  # noqa: F401 (fixtures)
from heads import HEADS, errors, unnamed
from http_support import document
from jqmaster import JQ, Handle
from jqmaster.cli.options import parsers
from jqmaster.cli.run import build
from jqmaster.client import task
from jqmaster.engine import options
from jqmaster.engine.calls import Caller
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import JobOptions
from jqmaster.manifest import operation as table
from jqmaster.manifest import parts
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.operations import OPERATIONS as TABLE

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = (ROOT / "docs/protocol.md").read_text()
OPERATIONS = {script.stem for script in (ROOT / "scripts").glob("*.lua")}
BY_NAME = {field.name: field for field in FIELDS}
OF_THE_CALL = {"durable"}  # told with a job, and not in its spec: how long its enqueueing waits

NO_OPTION = {
    "name": "the command's first argument",
    "headers": "of tracers, which do not use a shell",
}
# How the command line is asked for each operation, but for what is made of the table and its examples. `{job}` waits,
# `{running}` runs.
REACHED = {
    "audit": "audit", "cancel": "cancel {job}", "change": "change {job} --priority 1", "config": "config",
    "constrain": "constraints set c {{\"name\":\"a\"}} --concurrency 1", "constraints": "constraints",
    "discard": "discard {job}", "enqueue": "enqueue a", "explain": "explain {job}", "export": "export {file}",
    "failures": "failures", "forget": "queues forget empty", "free": "free k",
    "get": "get {job}", "grant": "keys create b --role viewer",
    "history": "history {job}",
    "hold": "constraints hold known 5", "import": "import {file} --namespace {copy}", "jobs": "jobs",
    "keys": "keys", "mark": "mark v2", "marks": "marks",
    "kick": "kick {running}", "queue": "queues pause a", "queues": "queues",
    "retry": "retry --queue a --yes", "revoke": "keys revoke {key}",
    "schedule": "schedules set s a --every 1h", "schedules": "schedules",
    "stats": "stats", "subscribe": "webhooks set v http://h/ {{\"name\":\"a\"}}",
    "unsubscribe": "webhooks delete known", "webhooks": "webhooks", "tags": "tags",
    "bulk": "queues purge a --yes", "bulks": "bulks", "unconstrain": "constraints delete known",
    "unschedule": "schedules delete known", "usage": "constraints show known", "watch": "result {done} --wait",
    "worker": "workers quiet w", "workers": "workers",
}  # fmt: skip
REACHED |= {
    one.script: " ".join([one.script, *(field.example for field in one.fields if needed(one, field))])
    for one in COMMANDS
}
NOT_REACHED = {
    "depend": "links are told when a job is enqueued; who changes them later is a program",
    "result": "the command shows the document's, as reading starts the end of a result",
    "finish": "of workers", "head": "of workers", "heartbeat": "of workers", "pick": "of workers",
    "register": "of workers", "release": "of workers", "unregister": "of workers",
    "setup": "`load` and whoever enqueues run it as a part of more",
    "track": "of who watches live: a page, a program",
}  # fmt: skip
INSIDE = {"assign", "refuse", "tick", "touch"}  # of masters


PARSERS = dict(parsers(build()))


def options_of(command: str) -> set[str]:
    return set(PARSERS[command,]._option_string_actions)


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

    def test_the_command_line_has_an_option_for_each(self) -> None:
        for command, fields in (("enqueue", FIELDS), ("change", [one for one in FIELDS if one.changed])):
            flags = options_of(command)
            for field in fields:
                assert field.option in flags or field.name in NO_OPTION, f"{command}: {field.name}"
        assert {field.name for field in FIELDS if not field.option} == NO_OPTION.keys()


async def made(engine: Operations) -> dict[str, str]:
    """What the command lines of `REACHED` speak of."""
    await engine.constrain("known", {"name": "x"}, concurrency=1)
    await engine.schedule("known", {"name": "a"}, every=3600)
    await engine.subscribe("known", "http://h/", {"name": "x"})
    await engine.queue("empty", max_waiting=1)
    specs = [
        {"name": "unique", "unique": "k"},
        *({"name": name, "keep_result": True} for name in ("a", "runs", "ends")),
    ]
    _, waits, runs, ends = await engine.enqueue([(spec, b"\xc0") for spec in specs])
    await engine.pick("w", "runs")
    [job] = (await engine.pick("w", "ends")).jobs
    await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
    worker = await engine.register("w", ["a"])
    key = await engine.grant("ann", ["admin"])
    return {"job": waits.id, "worker": worker, "running": runs.id, "done": ends.id, "key": key["id"]}


def test_each_operation_has_a_way_there_or_a_reason() -> None:
    known = REACHED.keys() | NOT_REACHED.keys()
    assert differences(known, OPERATIONS - INSIDE) == [], "its command line in REACHED, or why not in NOT_REACHED"
    assert not REACHED.keys() & NOT_REACHED.keys()


@pytest.mark.parametrize("operation", sorted(REACHED))
def test_the_command_line_reaches(
    operation: str, straight: Cli, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {**straight.engine(made), "file": str(tmp_path / "copy.jq"), "copy": namespace.replace("}", ".copy}")}
    if operation == "import":
        straight.ok("export", there["file"])
    called: list[str] = []
    call = Caller._call

    async def noted(caller: Caller, script: str, *given: Any) -> Any:
        called.append(script)
        return await call(caller, script, *given)

    monkeypatch.setattr(Caller, "_call", noted)
    said = straight.run(*REACHED[operation].format(**there).split())
    assert said.code == 0, (
        f"{said.err}: `example` of a field (manifest/operations.py), or REACHED, names what `made` makes"
    )
    assert operation in called


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
