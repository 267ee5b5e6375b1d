"""One typed method for each operation of docs/protocol.md, and a raw way for everything else.

By what they are about: jobs (``engine_jobs``), work (``engine_work``), limits, schedules and the rest that
operators need (``engine_operation``). ``calls`` has what lies under them.
"""

from __future__ import annotations

from jqmaster.engine.calls import Argument, Holding, Spec, connect, given, pack
from jqmaster.engine.jobs import JobCalls
from jqmaster.engine.operation import OperationCalls
from jqmaster.engine.work import WorkCalls

__all__ = ["Argument", "Engine", "Holding", "Spec", "connect", "given", "pack"]


class Engine(JobCalls, WorkCalls, OperationCalls):
    """The operations of one namespace, each with a method of its own; see ``Caller``."""
