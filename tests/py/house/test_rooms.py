"""Which rooms of jqlua/ and of python/jqmaster/ may know of which: low ones know of nothing above them."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
JQLUA = ROOT / "jqlua"
PACKAGE = ROOT / "python/jqmaster"

# Floor by floor, from high to low, and the rooms of a floor as well: a module imports from its own room and from lower
# ones, also for type checkers alone and within functions. The package's `__init__` may know all. With each room the
# lines that it may have.
FLOORS: dict[str, dict[str, int]] = {
    "for people": {"__main__": 20, "cli": 2470, "testing": 140},
    "for programs": {"client": 2120, "worker": 1880},
    "the server": {"server": 3270},
    "the engine's hand": {
        "cluster": 745,
        "engine": 1985,
        "connection": 1170,
        "bundle": 540,
        "manifest": 615,
        "errors": 155,
    },
}
ROOMS = {room: most for floor in FLOORS.values() for room, most in floor.items()}


# Rooms of jqlua/, from low to high: a reader may read them in this order.
LUA_ROOMS = (
    "base values job queue settings statistics workers limits links webhooks life schedules access pick find alerts "
    "upkeep"
).split()


def test_a_room_of_lua_knows_of_nothing_above_it() -> None:
    paths = {f"{path.parent.name}.{path.stem}": path for path in JQLUA.glob("*/*.lua")}
    assert {path.parent.name for path in paths.values()} == set(LUA_ROOMS)
    required = {
        (module, other)
        for module, path in paths.items()
        for other in re.findall(r'require "jqlua\.([\w.]+)"', path.read_text())
    }
    assert circle(required) == []
    height = {module: LUA_ROOMS.index(room(module)) for module in paths}
    assert {(module, other) for module, other in required if height[module] < height[other]} == set()


def test_a_module_of_lua_that_a_comment_names_is_there() -> None:
    known = {f"{path.parent.name}.{path.stem}" for path in JQLUA.rglob("*.lua")}
    for path in *JQLUA.rglob("*.lua"), *(ROOT / "scripts").glob("*.lua"):
        named = set(re.findall(r"module (\w+\.\w+)", path.read_text()))
        assert named - known == set(), path


def test_a_module_of_lua_is_required_under_the_name_of_its_file() -> None:
    names = [path.stem for path in JQLUA.rglob("*.lua")]
    assert sorted(names) == sorted(set(names))
    for path in *JQLUA.rglob("*.lua"), *(ROOT / "scripts").glob("*.lua"):
        required = re.findall(r'(\w+) = require "jqlua\.\w+\.(\w+)"', path.read_text())
        assert [(local, name) for local, name in required if local != name] == [], path


def modules() -> dict[str, Path]:
    """All modules but the package's own, by their names below `jqmaster`."""
    paths = (path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def room(module: str) -> str:
    return module.partition(".")[0]


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that one imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}".removeprefix("jqmaster.") for alias in node.names]
            outer = str(node.module).removeprefix("jqmaster.")
            yield from (one if one in known else outer for one in inner if one in known or outer in known)
        elif isinstance(node, ast.Import):
            names = (alias.name.removeprefix("jqmaster.") for alias in node.names)
            yield from (name for name in names if name in known)


@pytest.fixture(scope="module")
def arrows() -> set[tuple[str, str]]:
    """(module, one that it imports) each."""
    known = modules()
    return {(module, other) for module, path in known.items() for other in imported(path, known)}


def is_upward(module: str, other: str) -> bool:
    order = list(ROOMS)
    return order.index(room(other)) < order.index(room(module))


def test_each_room_of_the_package_has_its_place() -> None:
    assert set(map(room, modules())) == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_has_no_more_lines_than_agreed(name: str) -> None:
    texts = (path.read_text() for module, path in modules().items() if room(module) == name)
    assert sum(text.count("\n") for text in texts if not text.startswith("# Generated")) <= ROOMS[name]


def test_arrows_between_rooms_point_downward(arrows: set[tuple[str, str]]) -> None:
    assert {(one, other) for one, other in arrows if is_upward(one, other)} == set()


def test_no_modules_import_each_other_in_a_circle(arrows: set[tuple[str, str]]) -> None:
    assert circle(arrows) == []


def circle(arrows: set[tuple[str, str]]) -> list[str]:
    """Modules of which each leads to the next, and the last to the first; none where there are no such."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for one, other in arrows:
        sorter.add(one, other)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def is_there(module: str, name: str) -> bool:
    return hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}") is not None


def test_what_programs_beside_the_package_import_of_it_is_there() -> None:
    """Nobody runs the bench with each change."""
    imports = [
        (path, node.module, name.name)
        for folder in ("bench", "tools", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jqmaster"
        for name in node.names
    ]
    assert len(imports) > 20
    assert [one for one in imports if not is_there(*one[1:])] == []


def test_a_program_that_enqueues_loads_neither_servers_nor_what_workers_need() -> None:
    """By a master as well: each costs milliseconds at every start, and megabytes."""
    program = (
        "import sys; from jqmaster import JQ; jq = JQ('http://127.0.0.1:9', wait=1)\n"
        "jq.job(name='a')(lambda number: None)\n"
        "try: jq.tasks['a'].enqueue(1)\n"
        "except Exception as error: assert 'does not answer' in str(error), error\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    heavy = {"aiohttp", "hypercorn", "quart", "h11", "msgspec", "pydantic", "uvloop", "multiprocessing", "cyclopts"}
    assert "jqmaster" in loaded and loaded & heavy == set()
    rooms = {name.split(".")[1] for name in run.stdout.split() if name.startswith("jqmaster.")}
    assert rooms & {"server", "cli"} == set()
