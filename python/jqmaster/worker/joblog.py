"""Log lines that tell for which job they are, by `job_id`, `job_name`, `job_queue` and `job_attempt`."""

from __future__ import annotations

import logging

from jqmaster.server.logs import JsonLines
from jqmaster.worker.notes import current_job

PLAIN = "%(asctime)s %(levelname)s %(name)s: %(job)s%(message)s"


class JobFilter(logging.Filter):
    """Lets every record pass, and gives it the fields: of the running job, else None. `job` is text for a
    line: `[0687f92dba3c00/1] `, or empty. For a handler, as loggers do not filter what comes from below."""

    def filter(self, record: logging.LogRecord) -> bool:
        job = current_job.get(None)
        record.__dict__.update(
            job_id=job and job.id,
            job_name=job and job.name,
            job_queue=job and job.queue,
            job_attempt=job and job.attempt,
            job="" if job is None else f"[{job.id}/{job.attempt}] ",
        )
        return True


def configure(log_format: str | None = None, *, verbose: bool = False) -> None:
    """For a process of its own, once its program is imported: log to stderr, warnings and worse, and tell the job.
    How the program has configured the root logger holds; a `log_format`, "text" or "json", and `verbose` go over it."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
        root.setLevel(logging.WARNING)
        log_format = log_format or "text"
    if verbose:
        root.setLevel(logging.DEBUG)
    for handler in root.handlers:
        handler.addFilter(JobFilter())
        if log_format is not None:
            handler.setFormatter(JsonLines() if log_format == "json" else logging.Formatter(PLAIN))
