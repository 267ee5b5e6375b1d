"""JQ: a job queue on Redis. The package builds and loads the Lua engine, calls it, and serves it over HTTP.

``JQ`` defines, enqueues and runs jobs (docs/python.md), and has all that an operator needs, by a master or
straight on Redis. Beneath it, ``Engine`` calls the scripts, ``Worker`` runs functions for jobs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jqmaster.app.app import JQ
    from jqmaster.app.calling import MessagePack
    from jqmaster.app.handle import Handle, JobCancelled, JobError, NoResult
    from jqmaster.app.live import State
    from jqmaster.app.sealing import Encrypted
    from jqmaster.app.storing import Directory, Stored
    from jqmaster.app.task import Call, Task
    from jqmaster.engine.engine import Engine, connect
    from jqmaster.engine.replies import Job
    from jqmaster.engine.scripts import load
    from jqmaster.errors import JQError
    from jqmaster.worker.worker import (
        FollowUp,
        JobFailed,
        JobReleased,
        JobStopped,
        Move,
        Worker,
        checkpoint,
        current_job,
        progress,
    )

__all__ = [
    "JQ",
    "Call",
    "Directory",
    "Encrypted",
    "Engine",
    "FollowUp",
    "Handle",
    "JQError",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobReleased",
    "JobStopped",
    "MessagePack",
    "Move",
    "NoResult",
    "State",
    "Stored",
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
    "Call": "app.task",
    "checkpoint": "worker.worker",
    "connect": "engine.engine",
    "current_job": "worker.worker",
    "Directory": "app.storing",
    "Encrypted": "app.sealing",
    "Engine": "engine.engine",
    "FollowUp": "worker.worker",
    "Handle": "app.handle",
    "Job": "engine.replies",
    "JobCancelled": "app.handle",
    "JobError": "app.handle",
    "JobFailed": "worker.worker",
    "JobReleased": "worker.worker",
    "JobStopped": "worker.worker",
    "JQ": "app.app",
    "JQError": "errors",
    "load": "engine.scripts",
    "MessagePack": "app.calling",
    "Move": "worker.worker",
    "NoResult": "app.handle",
    "progress": "worker.worker",
    "State": "app.live",
    "Stored": "app.storing",
    "Task": "app.task",
    "Worker": "worker.worker",
}


if not TYPE_CHECKING:  # so that type checkers know the names, and refuse others

    def __getattr__(name: str) -> Any:
        """Import public names on first use: building a wheel needs this package, but none of its dependencies."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
