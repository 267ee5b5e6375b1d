"""The wheel, installed in an empty environment far from the repository, carries all it needs; without an extra it
brings what enqueues, and what needs an extra names it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import jqmaster
from jqmaster import JQ
from jqmaster.bundle.build import builtin, version_of
from processes import MasterProcess
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = Path(sysconfig.get_path("purelib"))
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
DIRECTORIES = ("python", "scripts", "jqlua", "openapi", "docs")

WORK = """
import asyncio, json, sys
import jqmaster
from jqmaster import JQ, Engine, connect
from jqmaster.engine.scripts import load

async def main(url):
    async with connect(url) as client:
        version = await load(client, "{jq}")
        engine = Engine(client)
        [(job_id, created)] = await engine.enqueue([({"name": "mail"}, b"\\xc0")])
        [job] = (await engine.pick("w", "mail")).jobs
        outcome = {"id": job.id, "token": job.token, "type": "success"}
        [state] = (await engine.finish("w", [(outcome, b"\\xc0")])).states
    return {"file": jqmaster.__file__, "version": version, "created": created, "state": state}

print(json.dumps(asyncio.run(main(sys.argv[1]))))
"""


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel, and `dependencies`, a folder; nothing in it points to the repository."""

    home: Path
    dependencies: Path

    @property
    def bin(self) -> Path:
        return self.home / "bin"

    def run(self, command: str, *arguments: object, cwd: Path) -> str:
        return run(self.bin / command, *arguments, cwd=cwd, PYTHONPATH=str(self.dependencies))

    def started(self, command: str, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
        environment = away(cwd) | {"PYTHONPATH": str(self.dependencies)}
        given = [str(self.bin / command), *arguments]
        return subprocess.Popen(
            given, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def away(folder: Path) -> dict[str, str]:
    """An environment that does not point back to the repository."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(*command: object, cwd: Path, **more: str) -> str:
    """Run a command away from the repository."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=away(cwd) | more, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the sdist, made from a copy of the sources."""
    copy = tmp_path_factory.mktemp("sources")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in DIRECTORIES:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in FILES:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", out, copy, cwd=out)
    assert next(out.glob("*.tar.gz"))
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment into which pip installed the wheel, and nothing else."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python"]
    run(*pip, "install", "-q", "--no-compile", "--no-deps", "--no-index", wheel, cwd=home)
    return home


@pytest.fixture(scope="module")
def installed(home: Path) -> Installed:
    """With all extras: what is installed here."""
    # Path files of a folder that a variable adds are not read: an editable jqmaster there stays unseen.
    return Installed(home, PACKAGES)


def test_it_loads_and_works(installed: Installed, fresh_server: RedisServer, tmp_path: Path) -> None:
    told = json.loads(installed.run("python", "-c", WORK, fresh_server.url, cwd=tmp_path))
    assert told["file"].startswith(str(installed.home))
    assert told["created"] and told["state"] == "done"
    assert told["version"] == version_of(builtin())  # which has that of the library in it


def test_it_carries_built_scripts_and_apis_but_no_sources(installed: Installed, tmp_path: Path) -> None:
    command = "import jqmaster, pathlib; print(pathlib.Path(jqmaster.__file__).parent)"
    package = Path(installed.run("python", "-c", command, cwd=tmp_path).strip())
    assert {path.stem for path in package.glob("lua/*.lua")} == {*builtin(), "library"}
    assert {path.name for path in package.glob("openapi/*")} == {path.name for path in ROOT.glob("openapi/*.yaml")}
    assert (package / "py.typed").exists()
    [licence] = package.parent.glob("jqmaster-*.dist-info/licenses/LICENSE")
    assert licence.read_text() == (ROOT / "LICENSE").read_text()
    modules = {path.relative_to(package) for path in package.rglob("*.py")}
    here = Path(jqmaster.__file__).parent
    assert modules == {path.relative_to(here) for path in here.rglob("*.py")}
    files = {path.relative_to(package) for path in (package / "ui").rglob("*.*")}
    assert files >= {path.relative_to(here) for path in (here / "ui").rglob("*.*") if path.suffix != ".md"}


PROGRAM = "from jqmaster import JQ\njq = JQ()\n@jq.job\ndef double(number): return 2 * number\n"


def test_it_serves_with_a_redis_of_its_own_and_its_worker_works(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(PROGRAM)
    master = installed.started("jqmaster", "serve", "--port", "0", cwd=tmp_path)
    worker = None
    try:
        assert master.stdout
        url = master.stdout.readline().split()[-1]
        worker = installed.started("jqmaster", "work", "tasks:jq", "--url", url, cwd=tmp_path)
        assert JQ(url).enqueue("double", 21).result(timeout=60) == 42
        assert (tmp_path / "var").is_dir()
    finally:
        for process in (worker, master):
            if process:
                process.terminate()
                assert process.wait(60) == 0


def asked_for(home: Path, extras: Sequence[str] = ("",)) -> list[Distribution]:
    """What the wheel asks for with `extras`, and what that asks for, as it is installed here; which must fit."""
    [installed] = distributions(name="jqmaster", path=[str(next(home.glob("lib/*/site-packages")))])
    left = [(text, extra) for text in installed.requires or [] for extra in extras]
    found: dict[str, Distribution] = {}
    for text, extra in left:  # which grows meanwhile
        one = Requirement(text)
        if one.name != "jqmaster" and (one.marker is None or one.marker.evaluate({"extra": extra})):
            package = distribution(one.name)
            assert one.specifier.contains(package.version, prereleases=True), text
            found[package.name] = package
            more = [(text, extra) for text in package.requires or [] for extra in ("", *one.extras)]
            left += [each for each in more if each not in left]
    return list(found.values())


def linked(home: Path, folder: Path, extras: Sequence[str]) -> Installed:
    """With what the wheel asks for, and nothing else: it is linked from here. That pip finds it as well was seen when
    this environment was made; to have it look through the index again is half a minute of waiting."""
    for package in asked_for(home, extras):
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(package.locate_file(top))))
    return Installed(home, folder)


@pytest.fixture(scope="module")
def bare(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return linked(home, tmp_path_factory.mktemp("dependencies"), ("",))


@pytest.fixture(scope="module")
def for_people(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return linked(home, tmp_path_factory.mktemp("dependencies"), ("", "cli"))


@pytest.fixture(scope="module")
def for_workers(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return linked(home, tmp_path_factory.mktemp("dependencies"), ("", "cli", "worker"))


APP = "from jqmaster import JQ\njq = JQ()\n@jq.job\ndef add(a: int, b: int) -> int:\n    return a + b\n"
ENQUEUE = """
import asyncio, sys
from app import add, jq

async def awaited():
    return (await add.aenqueue(1, b=2)).id

with jq.using(sys.argv[1]):
    print(add.enqueue(40, 2).status(), jq.handle(asyncio.run(awaited())).status())
"""


def test_redis_and_msgpack_are_enough_to_enqueue(bare: Installed, fresh_server: RedisServer, tmp_path: Path) -> None:
    assert {package.name for package in asked_for(bare.home)} == {"redis", "hiredis", "msgpack"}
    (tmp_path / "app.py").write_text(APP)
    assert bare.run("python", "-c", ENQUEUE, fresh_server.url, cwd=tmp_path) == "queued queued\n"
    with MasterProcess("--redis", fresh_server.url) as master:
        assert bare.run("python", "-c", ENQUEUE, master.url, cwd=tmp_path) == "queued queued\n"


def test_the_extra_for_workers_brings_what_works(
    for_workers: Installed, fresh_server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    where = ("--redis", fresh_server.url)
    worker = for_workers.started("jqmaster", "work", "app:jq", *where, cwd=tmp_path)
    try:
        command = f"from app import jq, add\nwith jq.using({fresh_server.url!r}): print(add.enqueue(40, 2).result(60))"
        assert for_workers.run("python", "-c", command, cwd=tmp_path) == "42\n"
        assert "add" in for_workers.run("jqmaster", "queues", *where, cwd=tmp_path)
    finally:
        worker.terminate()
        assert worker.wait(60) == 0


@pytest.mark.parametrize(
    ("command", "extras", "missing", "extra"),
    [
        ("work app:jq", "bare", "cyclopts", "worker"),
        ("queues", "bare", "cyclopts", "cli"),
        ("serve", "for_people", "hypercorn", "server"),
    ],
)
def test_a_command_names_the_extra_it_needs(
    command: str, extras: str, missing: str, extra: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    process = request.getfixturevalue(extras).started("jqmaster", *command.split(), cwd=tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.endswith(f"needs {missing}: pip install 'jqmaster[{extra}]'\n") and output.count("\n") == 1, output
