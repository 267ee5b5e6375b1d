"""What processes log: one line for each request, with its id, by the logger `jqmaster.request` at INFO; all lines as
JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import secrets
import sys
import time

request_log = logging.getLogger("jqmaster.request")

_ID = re.compile(rb"[!-~]{1,128}")


def request_id(header: bytes | None) -> bytes:
    """The request's `x-request-id`, or a new one where it has none, or one that is not fit for a log."""
    return header if header is not None and _ID.fullmatch(header) else secrets.token_hex(8).encode()


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (ISO 8601, UTC), `level`, `logger`, `message`, those of the job, and
    what was given as `extra`; `exception` with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        if record.exc_info and not record.exc_text:  # which a failure's record has, bounded
            record.exc_text = self.formatException(record.exc_info)
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in record.__dict__.items() if name not in _USUAL},
            "exception": record.exc_text,
        }
        line = {name: value for name, value in line.items() if value is not None}
        return json.dumps(line, default=str, ensure_ascii=False)


_USUAL = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "job"}


def say(logger: logging.Logger, line: str, *, is_error: bool = False) -> None:
    """Tell who started the process, whatever the level of its log: on stdout, an error on stderr. As JSON where the
    log is. A job may have closed these."""
    text = f"jqmaster: {line}" if is_error else line
    level = logging.ERROR if is_error else logging.INFO
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, JsonLines):
            text = handler.formatter.format(logger.makeRecord(logger.name, level, "", 0, line, (), None))
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr if is_error else sys.stdout, flush=True)
