"""What a worker does not use takes no memory."""

from __future__ import annotations

from pathlib import Path

from jqmaster import JQ
from processes import Process

UNUSED = {
    "aiohttp", "cyclopts", "hypercorn", "msgspec", "quart", "rich",
    "http.client", "logging.handlers", "multiprocessing",
    "jqmaster.engine.http", "jqmaster.server.http", "jqmaster.worker.processes", "jqmaster.worker.push",
}  # fmt: skip
MOST_MB = 13
"""Of a worker beyond what redis-py takes, which is some 31 MB; the event loop that tests install is in it."""


def test_a_worker_on_redis_imports_what_it_uses_alone(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"""
import sys
from pathlib import Path
import redis.asyncio
def resident_mb(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
BEFORE = resident_mb()
from jqmaster import JQ
jq = JQ({redis_url!r}, namespace={namespace!r})
@jq.job
async def look() -> list: return [sorted(sys.modules), resident_mb() - BEFORE]
jq.run()
"""
    )
    with Process("program", ready="is ready", folder=tmp_path):
        modules, mb = JQ(redis_url, namespace=namespace).enqueue("look").result(timeout=60)
    assert UNUSED & set(modules) == set()
    assert mb < MOST_MB
