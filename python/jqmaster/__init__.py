"""JQ: a job queue on Redis. The package builds and loads the Lua engine, calls it, and serves it over HTTP.

``JQ`` defines, enqueues and runs jobs (docs/python.md), and has all that an operator needs, by a master or
straight on Redis. Beneath it, ``Engine`` calls the scripts, ``Worker`` runs functions for jobs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jqmaster.client.app import JQ
    from jqmaster.client.calling import MessagePack
    from jqmaster.client.flow import Flow
    from jqmaster.client.handle import Handle, JobCancelled, JobError, JobSkipped, NoResult
    from jqmaster.client.task import Call, Task
    from jqmaster.engine.engine import Engine, connect
    from jqmaster.engine.replies import Job
    from jqmaster.engine.scripts import load
    from jqmaster.errors import JQError
    from jqmaster.server.logs import JsonLines
    from jqmaster.worker.ending import FollowUp, JobFailed, JobReleased, Move, ResumeAfter
    from jqmaster.worker.joblog import JobFilter
    from jqmaster.worker.notes import JobStopped, checkpoint, current_job, progress
    from jqmaster.worker.worker import Worker

__all__ = [
    "JQ",
    "Call",
    "Engine",
    "Flow",
    "FollowUp",
    "Handle",
    "JQError",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobFilter",
    "JobReleased",
    "JobSkipped",
    "JobStopped",
    "JsonLines",
    "MessagePack",
    "Move",
    "NoResult",
    "ResumeAfter",
    "Task",
    "Worker",
    "__version__",
    "checkpoint",
    "connect",
    "current_job",
    "load",
    "progress",
]

_NAMES = {
    "client.app": "JQ",
    "client.calling": "MessagePack",
    "client.flow": "Flow",
    "client.handle": "Handle JobCancelled JobError JobSkipped NoResult",
    "client.task": "Call Task",
    "engine.engine": "Engine connect",
    "engine.replies": "Job",
    "engine.scripts": "load",
    "errors": "JQError",
    "server.logs": "JsonLines",
    "worker.ending": "FollowUp JobFailed JobReleased Move ResumeAfter",
    "worker.joblog": "JobFilter",
    "worker.notes": "JobStopped checkpoint current_job progress",
    "worker.worker": "Worker",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # so that type checkers know the names, and refuse others

    def __getattr__(name: str) -> Any:
        """Import public names on first use: building a wheel needs this package, but none of its dependencies."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
