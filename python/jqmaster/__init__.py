"""JQ: a job queue on Redis. The package builds and loads the Lua engine, calls it, and serves it over HTTP.

``JQ`` defines, enqueues and runs jobs (docs/python.md). Beneath it, ``Client`` and ``AsyncClient`` speak to a
JQ master, ``Engine`` calls the scripts, ``Worker`` runs functions for jobs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .app import JQ
    from .calling import MessagePack
    from .client import AsyncClient, Client
    from .engine import Engine, connect
    from .errors import JQError
    from .handle import Handle, JobCancelled, JobError, NoResult
    from .replies import Job
    from .scripts import load
    from .task import Call, Task
    from .worker import FollowUp, JobFailed, JobReleased, Move, Worker, checkpoint, current_job, progress

__all__ = [
    "JQ",
    "AsyncClient",
    "Call",
    "Client",
    "Engine",
    "FollowUp",
    "Handle",
    "JQError",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobReleased",
    "MessagePack",
    "Move",
    "NoResult",
    "Task",
    "Worker",
    "__version__",
    "checkpoint",
    "connect",
    "current_job",
    "load",
    "progress",
]

_MODULES = {
    "AsyncClient": "client",
    "Call": "task",
    "checkpoint": "worker",
    "Client": "client",
    "connect": "engine",
    "current_job": "worker",
    "Engine": "engine",
    "FollowUp": "worker",
    "Handle": "handle",
    "Job": "replies",
    "JobCancelled": "handle",
    "JobError": "handle",
    "JobFailed": "worker",
    "JobReleased": "worker",
    "JQ": "app",
    "JQError": "errors",
    "load": "scripts",
    "MessagePack": "calling",
    "Move": "worker",
    "NoResult": "handle",
    "progress": "worker",
    "Task": "task",
    "Worker": "worker",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use: building a wheel needs this package, but none of its dependencies."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
