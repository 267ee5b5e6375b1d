"""The loggers of workers, by name `jqmaster.worker` and `jqmaster.jobs`."""

from __future__ import annotations

import logging
from contextlib import suppress


def harmless(name: str) -> logging.Logger:
    """The logger of this name, which lets nothing out from now on: what a handler or filter of the program raises, or
    one whose stream a job has closed, ends nothing."""
    logger = logging.getLogger(name)
    handle = logger.handle

    def handled(record: logging.LogRecord) -> None:
        with suppress(Exception):
            handle(record)

    logger.handle = handled  # type: ignore[method-assign]
    return logger


log, jobs_log = harmless("jqmaster.worker"), harmless("jqmaster.jobs")
