"""The wheel, installed in an empty environment far from the repository, carries all it needs; and without an extra it
brings what enqueues and works."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import jqmaster
from jqmaster import JQ
from jqmaster.bundle.build import version_of
from jqmaster.engine.scripts import builtin
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
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


def run(*command: object, cwd: Path) -> str:
    """Run a command away from the repository, with an environment that does not point back to it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
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
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy, cwd=out)
    assert next(out.glob("*.tar.gz"))
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` directory of an environment that has the wheel; dependencies come from this environment."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-compile",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home,
    )
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    # Path files in a directory that a path file adds are not read: an editable jqmaster there stays unseen.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_it_loads_and_works(installed: Path, fresh_server: RedisServer, tmp_path: Path) -> None:
    told = json.loads(run(installed / "python", "-c", WORK, fresh_server.url, cwd=tmp_path))
    assert told["file"].startswith(str(installed.parent))
    assert told["created"] and told["state"] == "done"
    assert told["version"] == version_of(builtin())  # which has that of the library in it


def test_it_carries_built_scripts_and_apis_but_no_sources(installed: Path, tmp_path: Path) -> None:
    command = "import jqmaster, pathlib; print(pathlib.Path(jqmaster.__file__).parent)"
    package = Path(run(installed / "python", "-c", command, cwd=tmp_path).strip())
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


def test_it_brings_the_command(installed: Path, tmp_path: Path) -> None:
    assert "serve" in run(installed / "jqmaster", "--help", cwd=tmp_path)


def started(*command: object, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        list(map(str, command)),
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_it_serves_with_a_redis_of_its_own_and_its_worker_works(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("FUNCTIONS = {'double': lambda argument: 2 * argument}\n")
    master = started(installed / "jqmaster", "serve", "--port", "0", cwd=tmp_path)
    worker = None
    try:
        assert master.stdout
        url = master.stdout.readline().split()[-1]
        worker = started(installed / "jqmaster", "work", "tasks:FUNCTIONS", "--url", url, cwd=tmp_path)
        assert JQ(url).enqueue("double", 21).result(timeout=60) == 42
        assert (tmp_path / "var").is_dir()
    finally:
        for process in (worker, master):
            if process:
                process.terminate()
                assert process.wait(60) == 0


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` directory of an environment in which nothing was installed but the wheel with what it asks for."""
    home = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    install = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "-q", "--no-compile", wheel]
    subprocess.run(install, check=True, cwd=home)  # where packages come from is this environment's business
    return home / "bin"


def test_without_an_extra_it_enqueues_and_works(bare: Path, fresh_server: RedisServer, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from jqmaster import JQ\njq = JQ()\n@jq.job\ndef add(a: int, b: int) -> int:\n    return a + b\n"
    )
    where = ("--redis", fresh_server.url)
    worker = started(bare / "jqmaster", "work", "app:jq", *where, cwd=tmp_path)
    try:
        command = f"from app import jq, add\nwith jq.using({fresh_server.url!r}): print(add.enqueue(40, 2).result(60))"
        assert run(bare / "python", "-c", command, cwd=tmp_path) == "42\n"
        assert "add" in run(bare / "jqmaster", "queues", *where, cwd=tmp_path)
    finally:
        worker.terminate()
        assert worker.wait(60) == 0


@pytest.mark.parametrize("command", ["serve", "demo", "work app:FUNCTIONS --push --redis unix:///nowhere"])
def test_what_needs_an_extra_names_it(command: str, bare: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("FUNCTIONS = {'double': lambda argument: 2 * argument}\n")
    process = started(bare / "jqmaster", *command.split(), cwd=tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.endswith("needs hypercorn: pip install 'jqmaster[server]'\n") and output.count("\n") == 1, output
