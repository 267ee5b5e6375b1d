"""What others' tools make of the OpenAPI documents: a linter finds nothing, and generated clients work."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_live import Live, live_server
from http_support import JSON, MSGPACK, OPENAPI, document

TOOLS = Path(__file__).resolve().parents[3] / "tools" / "js"
PACKAGES = TOOLS / "node_modules"
needs_packages = pytest.mark.skipif(
    shutil.which("node") is None or not (PACKAGES / "@redocly").exists(), reason="no node_modules: make setup"
)

IN_TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./jq.js";

declare const process: { argv: string[] };
const client = createClient<paths>({ baseUrl: process.argv[2]! });
const name = "double";

const enqueued = await client.POST("/job", { body: { name, argument: 21, keep_result: true } });
const params = { header: { "worker-id": "typescript" } };
const picked = await client.POST("/pick", { params, body: { queues: [name] } });
const job = picked.data!.jobs[0]!;
const result = Number(job.argument) * 2;
await client.POST("/done", {
  params,
  body: { outcomes: [{ id: job.id, token: job.token, type: "success", result }] },
});
const id: string = enqueued.data!.job_id;
const read = await client.GET("/job/{id}/result", { params: { path: { id } } });
console.log(JSON.stringify(read.data));
// @ts-expect-error: a name is text
export const wrong = () => client.POST("/job", { body: { name: 1 } });
"""
IN_PYTHON = """
import json
import pkgutil
import sys

import jq
from jq import Client
from jq.api.pusher import enqueue_one, result
from jq.api.worker import finish, pick
from jq.models import FinishBody, NewJob, PickBody, Success

for module in pkgutil.walk_packages(jq.__path__, "jq."):
    __import__(module.name)
client = Client(sys.argv[1], raise_on_unexpected_status=True)
enqueued = enqueue_one.sync(client=client, body=NewJob("double", argument=21, keep_result=True))
[job] = pick.sync(client=client, worker_id="python", body=PickBody(queues=["double"])).jobs
outcome = Success(job.id, job.token, "success", result=job.argument * 2)
finish.sync(client=client, worker_id="python", body=FinishBody(outcomes=[outcome]))
print(json.dumps(result.sync(enqueued.job_id, client=client)))
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What the program writes to its standard output. All that it writes is shown if it fails."""
    environ = {**os.environ, "NO_COLOR": "1", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    ran = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture
def live(redis_url: str) -> Iterator[Live]:
    with live_server(redis_url, "{t" + secrets.token_hex(6) + "}") as live:
        yield live


@needs_packages
def test_redocly_finds_nothing() -> None:
    documents = [OPENAPI / f"{name}.yaml" for name in ("master", "worker")]
    run(PACKAGES / ".bin/redocly", "lint", "--config", TOOLS / "redocly.yaml", *documents)


@needs_packages
def test_a_typescript_client_works(live: Live, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    run(PACKAGES / ".bin/openapi-typescript", OPENAPI / "master.yaml", "--output", tmp_path / "jq.d.ts")
    compiler = (PACKAGES / ".bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--noEmitOnError")
    options = ("--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom")
    (tmp_path / "double.mts").write_text(IN_TYPESCRIPT)
    run(*compiler, *options, "double.mts", cwd=tmp_path)
    assert json.loads(run("node", "double.mjs", live.url, cwd=tmp_path)) == 42


def without_msgpack(node: Any) -> Any:
    """The document with JSON alone: the generator warns of every content type that it does not know."""
    if isinstance(node, list):
        return [without_msgpack(value) for value in node]
    if not isinstance(node, dict):
        return node
    return {key: without_msgpack(value) for key, value in node.items() if key != MSGPACK or JSON not in node}


def test_a_python_client_works(live: Live, tmp_path: Path) -> None:
    (tmp_path / "master.json").write_text(json.dumps(without_msgpack(document())))
    config = {"post_hooks": [], "content_type_overrides": {"application/yaml": "text/plain"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    generate = (sys.executable, "-m", "openapi_python_client", "generate", "--meta=none", "--fail-on-warning")
    run(*generate, "--path=master.json", "--config=config.json", "--output-path=jq", cwd=tmp_path)
    (tmp_path / "double.py").write_text(IN_PYTHON)
    assert json.loads(run(sys.executable, "double.py", live.url, cwd=tmp_path)) == 42
