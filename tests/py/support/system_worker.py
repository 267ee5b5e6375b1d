"""A worker process of a system for the fault tests: `python -m system_worker URL ROOT JOURNAL`.

It notes when functions begin and end, and every outcome that was accepted, in its journal.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from jqmaster.demo.journal import Journal
from jqmaster.worker.run import WorkOptions, run

NAMES = ("plain", "limited", "child", "tick")


async def work(argument: Any) -> Any:
    """For as many milliseconds as the argument tells."""
    await asyncio.sleep(argument["ms"] / 1000)
    return argument.get("number")


def main(url: str, root: str, journal: str) -> int:
    """Work until SIGTERM."""
    notes = Journal(Path(journal))
    options = WorkOptions(
        functions=dict.fromkeys(NAMES, notes.around(work)),
        redis_url=url,
        system=root,
        concurrency=6,
        drain_timeout_s=2,
        on_outcome=notes.note,
    )
    return run(options)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(*sys.argv[1:]))
