"""How a job ended, where that is no result."""

from __future__ import annotations

from typing import Any, Literal


class JobError(Exception):
    """The job failed for good.

    `reason`: other, timeout, lapses, expired or dependency; `message`: what its last failure said; `error`: the value
    that came with it, such as `{"type": "ValueError", "traceback": "…"}`.
    """

    def __init__(self, job_id: str, reason: str, message: str, error: Any = None) -> None:
        super().__init__(job_id, reason, message)
        self.job_id = job_id
        self.reason = reason
        self.message = message
        self.error = error

    def __str__(self) -> str:
        about = "" if self.reason == "other" else f" ({self.reason})"
        return f"job {self.job_id} failed{about}: {self.message}"


class JobCancelled(Exception):
    """The job was cancelled, so it has no result."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"job {self.job_id} was cancelled"


class JobSkipped(JobCancelled):
    """The job was to run only if one that it depends on failed, and none did: it never began, and has no result."""

    def __str__(self) -> str:
        return f"job {self.job_id} was not needed: none that it depends on failed"


class NoResult(LookupError):
    """The job is done, but there is no result to read.

    `reason`: `none`, it keeps none (`keep_result`); or `expired`, it was read, or its time is over.
    """

    def __init__(self, job_id: str, reason: Literal["none", "expired"]) -> None:
        super().__init__(job_id, reason)
        self.job_id = job_id
        self.reason = reason

    def __str__(self) -> str:
        kept = {"none": "it keeps none (keep_result)", "expired": "it was read, or its time is over"}
        return f"job {self.job_id} is done, and has no result: {kept[self.reason]}"
