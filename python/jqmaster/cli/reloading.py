"""`jqmaster work --reload`, for development: the worker starts anew when a Python file changes.

There is no second process that watches: when the worker has stopped as on SIGTERM, its process becomes a new one,
whatever threads it had.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from threading import Thread

from jqmaster.cli.status import Refused
from jqmaster.errors import brought_by


def run(work: Callable[[Callable[[], Awaitable[None]]], int]) -> int:
    """`work` ends when what it is given returns. Gives its exit code when it ends by itself; else the process begins
    anew."""
    with brought_by("worker", "work --reload"):
        from watchfiles import PythonFilter, watch
    changed: list[str] = []

    def look() -> None:
        for changes in watch(os.getcwd(), watch_filter=PythonFilter()):
            changed.extend(sorted(path for _, path in changes))

    async def change() -> None:
        while not changed:  # noqa: ASYNC110 (told by a thread, which ends with the process)
            await asyncio.sleep(0.1)

    Thread(
        target=look, name="reload", daemon=True
    ).start()  # before the program is imported, so that no change is missed
    code = 1
    try:
        code = work(change)
    except Exception as error:  # a slip in the program, most likely, which the next change may mend
        if isinstance(error, Refused):
            print(f"jqmaster: {error}", file=sys.stderr)
        else:
            traceback.print_exception(error)
        print("jqmaster: waiting for a change", file=sys.stderr, flush=True)
        asyncio.run(change())
    if not changed:
        return code
    print(f"{os.path.relpath(changed[0])} has changed: the worker starts anew", flush=True)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
