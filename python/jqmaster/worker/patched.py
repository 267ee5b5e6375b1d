"""gevent and eventlet: a program that they patched has greenlets, all in one thread, where others have threads. An
event loop needs a thread of the operating system, or it and who waits for it stop each other."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable

_ASKED = {
    "gevent": ("gevent.monkey", "is_module_patched", "threading"),
    "eventlet": ("eventlet.patcher", "is_monkey_patched", "thread"),
}


def patches() -> str | None:
    """Which of them has patched threads here, if one has."""
    for library, (module, function, what) in _ASKED.items():
        if module in sys.modules and getattr(sys.modules[module], function)(what):
            return library
    return None


def start_thread(target: Callable[[], None], name: str) -> Callable[[float], object]:
    """Run `target` in a thread of the operating system; what waits for its end, at most so many seconds. Raises
    RuntimeError where there is no way to one."""
    library = patches()
    if library == "gevent":
        running = importlib.import_module("gevent.threadpool").ThreadPool(1).spawn(target)
        return lambda timeout_s: running.wait(timeout_s)
    if library is not None:
        raise RuntimeError(
            f"{library} has patched threads, so that a plain call of JQ would hang. Call the async one instead, as in "
            f"asyncio.run(add.aenqueue(1, 2)); or leave threads as they are, {library}.monkey_patch(thread=False)"
        )
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread.join


def worker_problem() -> str | None:
    """Why a worker cannot run here, if it cannot: plain functions would never begin."""
    library = patches()
    if library is None:
        return None
    return (
        f"{library} has patched threads, in which a worker runs plain functions: they would never begin. Patch in the "
        "web application alone, and not in modules that workers import"
    )
