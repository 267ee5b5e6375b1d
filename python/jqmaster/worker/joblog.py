"""Log lines that tell for which job they are, by `job_id`, `job_name`, `job_queue` and `job_attempt`."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from jqmaster.wire.access import Fields, delivery_log, request_log
from jqmaster.worker.notes import current_job

PLAIN = "%(asctime)s %(levelname)s %(name)s: %(job)s%(message)s"
_FIELDS = ("job_id", "job_name", "job_queue", "job_attempt")


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


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (ISO 8601, UTC), `level`, `logger`, `message`, those of the job, and
    what was given as `extra`; `exception` with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if isinstance(record.msg, Fields):
            line |= {"message": record.msg.what, **record.msg}
        line.update((name, value) for name, value in record.__dict__.items() if name not in _USUAL)
        line = {name: value for name, value in line.items() if value is not None}
        if record.exc_info and not record.exc_text:  # which a failure's record has, bounded
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, default=str, ensure_ascii=False)


_USUAL = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "job"}


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


def say(logger: logging.Logger, line: str, *, is_error: bool = False) -> None:
    """Tell who started the process, whatever the level of its log: on stdout, an error on stderr. As JSON where the
    log is."""
    stream = sys.stderr if is_error else sys.stdout
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, JsonLines):
            level = logging.ERROR if is_error else logging.INFO
            record = logger.makeRecord(logger.name, level, "", 0, line, (), None)
            print(handler.formatter.format(record), file=stream, flush=True)
            return
    print(f"jqmaster: {line}" if is_error else line, file=stream, flush=True)


def set_up(*, access_log: bool) -> None:
    """For a server: what `--access-log` means."""
    # Commands keep these quiet, as they say themselves what went wrong; a server's log is the place for it.
    for name in ("jqmaster.http", "jqmaster.calls"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    if access_log:
        for logger in (request_log, delivery_log):
            logger.setLevel(logging.INFO)
