"""JQ: a job queue on Redis. The package builds and loads the Lua engine, calls it, and serves it over HTTP.

``Client`` and ``AsyncClient`` speak to a JQ master, ``Engine`` calls the scripts, ``Worker`` runs jobs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .engine import Engine, connect
    from .errors import JQError
    from .scripts import load
    from .worker import JobFailed, JobReleased, Worker

__all__ = [
    "AsyncClient",
    "Client",
    "Engine",
    "JQError",
    "JobFailed",
    "JobReleased",
    "Worker",
    "__version__",
    "connect",
    "load",
]

_MODULES = {
    "AsyncClient": "client",
    "Client": "client",
    "Engine": "engine",
    "JQError": "errors",
    "JobFailed": "worker",
    "JobReleased": "worker",
    "Worker": "worker",
    "connect": "engine",
    "load": "scripts",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use: building a wheel needs this package, but none of its dependencies."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
