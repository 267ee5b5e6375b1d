"""What `jqmaster work` and `serve` log, and how: as their program configured it, or as `--log-format` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jqmaster

PROGRAM = """
import logging, os, sys

{configures}
from jqmaster import JQ

jq = JQ()


@jq.job(max_retry=0)
def speak() -> None:
    logging.getLogger("shop").info("spoken")
    logging.getLogger("shop").warning("warned")
    sys.stderr.flush()
    os.kill(os.getpid(), 15)
"""
BASIC = 'logging.basicConfig(level=logging.INFO, format="MINE %(levelname)s %(message)s", stream=sys.stderr)'
DICT = """
import logging.config

logging.config.dictConfig({
    "version": 1,
    "formatters": {"mine": {"format": "MINE %(levelname)s %(message)s [%(job_name)s]"}},
    "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "mine"}},
    "root": {"level": "INFO", "handlers": ["err"]},
})
"""
OWN_HANDLER = """
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("MINE %(message)s"))
logging.getLogger().addHandler(handler)
"""


def work(folder: Path, redis_url: str, namespace: str, configures: str, *options: str, **variables: str) -> list[str]:
    """All that a worker writes for one job that ends it: stdout, then stderr."""
    (folder / "shop.py").write_text(PROGRAM.format(configures=configures))
    environment = {**os.environ, "JQ_URL": redis_url, "JQ_NAMESPACE": namespace, **variables}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(jqmaster.__file__).parents[1]), str(folder)])
    given = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 100}
    enqueue = "import shop; shop.speak.enqueue()"
    subprocess.run([sys.executable, "-c", enqueue], check=True, **given)  # type: ignore[call-overload]
    command = [sys.executable, "-m", "jqmaster.cli", "work", "shop:jq", "--name", "w", *options]
    ended = subprocess.run(command, **given)  # type: ignore[call-overload]
    assert ended.returncode == 0, ended.stderr
    return [*ended.stdout.splitlines(), *ended.stderr.splitlines()]


@pytest.mark.parametrize(
    ("configures", "lines"),
    [
        pytest.param(BASIC, ["MINE INFO spoken", "MINE WARNING warned"], id="basicConfig"),
        pytest.param(DICT, ["MINE INFO spoken [speak]", "MINE WARNING warned [speak]"], id="dictConfig"),
        pytest.param(OWN_HANDLER, ["MINE warned"], id="a handler"),
    ],
)
def test_what_the_program_configured_holds(
    tmp_path: Path, redis_url: str, namespace: str, configures: str, lines: list[str]
) -> None:
    said = work(tmp_path, redis_url, namespace, configures)
    assert [line for line in said if ("MINE" in line and "speak" not in line) or line in lines] == lines
    assert said[0] == "worker w is ready"


def test_else_warnings_come_with_their_job(tmp_path: Path, redis_url: str, namespace: str) -> None:
    said = work(tmp_path, redis_url, namespace, "")
    [line] = [line for line in said if "warned" in line]
    assert "WARNING shop: [" in line and "/1] warned" in line
    assert not any("spoken" in line for line in said)
    assert said[0] == "worker w is ready" and "worker w has stopped" in said


@pytest.mark.parametrize("configures", ["", BASIC])
@pytest.mark.parametrize("asked", [["--log-format", "json"], []])
def test_as_json_every_line_is_an_object(
    tmp_path: Path, redis_url: str, namespace: str, configures: str, asked: list[str]
) -> None:
    variables = {} if asked else {"JQ_LOG_FORMAT": "json"}
    said = [json.loads(line) for line in work(tmp_path, redis_url, namespace, configures, *asked, **variables)]
    messages = [one["message"] for one in said]
    assert messages[0] == "worker w is ready" and "worker w has stopped" in messages
    [line] = [one for one in said if one["message"] == "warned"]
    assert (line["job_name"], line["logger"]) == ("speak", "shop")
    assert ("spoken" in messages) == bool(configures), "the level is the program's"
