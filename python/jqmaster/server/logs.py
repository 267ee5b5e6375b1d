"""What processes log: one line for each request and each delivery, with ids; all lines as JSON.

The loggers are `jqmaster.request` and `jqmaster.delivery`, the level is INFO. A line is `key=value` pairs;
with `JsonLines` the pairs are members of the object.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import secrets
import sys
import time
from typing import Any

request_log = logging.getLogger("jqmaster.request")
delivery_log = logging.getLogger("jqmaster.delivery")

_ID = re.compile(rb"[!-~]{1,128}")
_PLAIN = re.compile(r"[!#-<>-~]+")
# Unlike any of another master's; counting on is a good deal cheaper than random bytes for each.
_prefix = secrets.token_hex(5)
_numbers = itertools.count(1)


class Fields(dict[str, Any]):
    """A line's pairs, for `logger.info`: turned into text only when a handler wants it. What is None or empty is left
    out."""

    def __str__(self) -> str:
        return " ".join(f"{name}={_shown(value)}" for name, value in self.items() if value not in (None, ""))


def _shown(value: Any) -> str:
    text = str(value)
    # Text from outside must not be able to make up another pair, or another line.
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def request_id(header: bytes | None) -> bytes:
    """The request's `x-request-id`, or a new one where it has none, or one that is not fit for a log."""
    if header is not None and _ID.fullmatch(header):
        return header
    return b"%s-%x" % (_prefix.encode(), next(_numbers))


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
            line |= record.msg
        line.update((name, value) for name, value in record.__dict__.items() if name not in _USUAL)
        line = {name: value for name, value in line.items() if value is not None}
        if record.exc_info and not record.exc_text:  # which a failure's record has, bounded
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
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
