"""examples/deploy: what its files start is started as processes; what tools can check of them they check. No container
is built here, and no unit is started."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from topologies import free_ports

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "examples" / "deploy"
UNITS = ("jqmaster.service", "jqmaster-worker@.service")
BIN = Path(sys.executable).parent


def tool(name: str) -> str:
    """Where it is, also among what releases are made with; without it the test is skipped."""
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], str(ROOT / "build" / "release" / "bin")]))
    if not found:
        pytest.skip(f"no {name} here")
    return found


def checked(*command: str | Path, **options: Any) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


# -- Dockerfile and compose.yaml -----------------------------------------------------------------------------


def image(target: str) -> dict[str, str]:
    """What the Dockerfile's last instructions of each kind say, in this stage and those it is made from."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    stages = {
        name: (of, body) for of, name, body in re.findall(r"^FROM (\S+) AS (\w+)\n(.*?)(?=^FROM|\Z)", text, re.M | re.S)
    }
    of, body = stages[target]
    inherited = image(of) if of in stages else {}
    return inherited | dict(re.findall(r"^([A-Z]+) (.+)$", body, re.M))


def test_the_build_takes_what_is_there() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert ignored[0] == "*"
    assert [name for name in kept if not (ROOT / name).exists()] == []
    assert {"python", "scripts", "jqlua", "openapi", "examples/hello.py"} <= set(kept)
    for stage in ("worker", "master"):
        assert image(stage)["USER"].isdigit() and image(stage)["USER"] != "0"


class Composed:
    """The services of compose.yaml as processes, with other ports, and files instead of secrets and volumes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redis, self.master = free_ports(2)
        self.document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        for name, secret in self.document["secrets"].items():
            (self.secrets / name).symlink_to(folder / Path(secret["file"]).name)

    def here(self, text: str) -> str:
        changes = {
            "$$": "$",
            "/run/secrets": str(self.secrets),
            "/data": str(self.folder),
            "redis:6379": f"127.0.0.1:{self.redis}",
            "master:8400": f"127.0.0.1:{self.master}",
            "//127.0.0.1:8400": f"//127.0.0.1:{self.master}",
            "redis-server -": f"redis-server - --bind 127.0.0.1 --port {self.redis}",
            "redis-cli": f"redis-cli -p {self.redis}",
        }
        for this, that in changes.items():
            text = text.replace(this, that)
        return text

    def command(self, name: str, *instead: str) -> tuple[list[str], dict[str, str]]:
        service = self.document["services"][name]
        target = service.get("build", {}).get("target")
        told = image(target) if target else {}
        entry = service.get("entrypoint") or yaml.safe_load(told["ENTRYPOINT"])
        rest = list(instead) or service.get("command") or yaml.safe_load(told.get("CMD", "[]"))
        said = dict(one.split("=", 1) for one in shlex.split(told.get("ENV", "")))
        said |= service.get("environment", {})
        environment = {key: value for key, value in os.environ.items() if not key.startswith("JQ_")}
        environment |= {key: self.here(str(value)) for key, value in said.items() if key != "PATH"}
        if name == "master":
            environment["JQ_PORT"] = str(self.master)
        environment["PATH"] = f"{BIN}:{environment['PATH']}"
        return [self.here(part) for part in [*entry, *rest]], environment

    def run(self, name: str, *instead: str) -> str:
        command, environment = self.command(name, *instead)
        return checked(*command, env=environment, cwd=ROOT / "examples")

    @contextmanager
    def started(self, name: str, is_ready: Callable[[], object]) -> Iterator[subprocess.Popen[bytes]]:
        command, environment = self.command(name)
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=ROOT / "examples")
        try:
            deadline = time.monotonic() + 40
            while not is_ready():
                text = (self.folder / f"{name}.log").read_text()
                assert process.poll() is None and time.monotonic() < deadline, text
                time.sleep(0.1)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()

    def is_healthy(self, test: list[str]) -> bool:
        shell = test[1:] if test[0] == "CMD" else ["/bin/sh", "-c", test[1]]
        command = [sys.executable if part == "python" else self.here(part) for part in shell]
        return subprocess.run(command, capture_output=True).returncode == 0


def test_what_compose_starts_works(tmp_path: Path) -> None:
    """As docs/deploy.md says: Redis, the worker's key, and only then the master, which does not start without."""
    (tmp_path / "redis-password").write_text("4f1a" * 12)
    at = Composed(tmp_path)
    [probe] = re.findall(r"CMD (\[.*\])", image("master")["HEALTHCHECK"])
    redis_probe = at.document["services"]["redis"]["healthcheck"]["test"]
    assert not at.is_healthy(redis_probe)
    with at.started("redis", lambda: at.is_healthy(redis_probe)):
        with pytest.raises(AssertionError, match="keys"):
            at.run("master", "serve")
        key = at.run("master", "keys", "create", "worker", "--role", "worker", "--role", "operator")
        (tmp_path / "worker-key").write_text(key)
        program = at.run("master", "keys", "create", "program", "--role", "pusher").strip()
        probing = ["CMD", *yaml.safe_load(probe)]
        assert not at.is_healthy(probing)
        with at.started("master", lambda: at.is_healthy(probing)) as master:
            with at.started("worker", lambda: "worker " in (tmp_path / "worker.log").read_text()) as worker:
                environment = {**os.environ, "JQ_URL": f"http://127.0.0.1:{at.master}", "JQ_KEY": program}
                assert checked(sys.executable, "hello.py", cwd=ROOT / "examples", env=environment) == "42\n"
                worker.terminate()
                assert worker.wait(60) == 0
            master.terminate()
            assert master.wait(60) == 0
        assert "4f1a" not in Path(tmp_path / "master.log").read_text()


# -- Units of systemd ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / unit).read_text(), flags=re.M)
    path = tmp_path / unit.replace("@", "@mail")
    path.write_text(text)
    told = subprocess.run([analyze, "verify", path], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
    # 10 is a service that is not confined at all.
    checked(analyze, "security", "--offline=yes", "--threshold=20", path)
