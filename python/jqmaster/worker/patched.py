"""gevent and eventlet: a program that they patched has greenlets, all in one thread, where others have threads."""

from __future__ import annotations

import sys

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


def worker_problem() -> str | None:
    """Why a worker cannot run here, if it cannot: plain functions would never begin."""
    library = patches()
    if library is None:
        return None
    return (
        f"{library} has patched threads, in which a worker runs plain functions: they would never begin. Patch in the "
        "web application alone, and not in modules that workers import"
    )
