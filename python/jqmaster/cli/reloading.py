"""`jqmaster work --reload`, for development: the worker starts anew when a Python file changes.

Files are looked at twice a second. A library that is told of changes by the system would be a dependency for what takes
milliseconds in a tree of a thousand files. There is no second process that watches: when the worker has stopped as on
SIGTERM, its process becomes a new one, whatever threads it had.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from jqmaster.cli.status import Refused

LOOK_EVERY_S = 0.5
_NO_SOURCES = frozenset(("__pycache__", "node_modules"))


class Files:
    """The Python files below a folder, but for hidden folders and virtual environments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = self._found()
        self.changed: str | None = None
        """One that was written, came or went since."""

    async def change(self) -> None:
        """Waits until there is one."""
        while self.changed is None:
            await asyncio.sleep(LOOK_EVERY_S)
            found = await asyncio.to_thread(self._found)
            self.changed = next(iter(sorted(dict(found.items() ^ self._known.items()))), None)

    def _found(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [one for one in folders if one[0] != "." and one not in _NO_SOURCES]
            if "pyvenv.cfg" in names:
                folders.clear()
                continue
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    try:
                        now = os.stat(path)
                    except OSError:
                        continue  # it went meanwhile
                    found[path] = now.st_mtime_ns, now.st_size, now.st_ino
        return found


def run(work: Callable[[Callable[[], Awaitable[None]]], int]) -> int:
    """`work` ends when what it is given says so. Returns its exit code when it ends by itself; else the process
    begins anew."""
    files = Files(Path.cwd())
    code = 1
    try:
        code = work(files.change)
    except Exception as error:  # a slip in the program, most likely, which the next change may mend
        if isinstance(error, Refused):
            print(f"jqmaster: {error}", file=sys.stderr)
        else:
            traceback.print_exception(error)
        print("jqmaster: waiting for a change", file=sys.stderr, flush=True)
        asyncio.run(files.change())
    if files.changed is None:
        return code
    print(f"{os.path.relpath(files.changed)} has changed: the worker starts anew", flush=True)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
