"""One log line for each request and each delivery, with ids.

The loggers are `jqmaster.request` and `jqmaster.delivery`, the level is INFO. A line is `key=value` pairs;
with `joblog.JsonLines` the pairs are members of the object.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

request_log = logging.getLogger("jqmaster.request")
delivery_log = logging.getLogger("jqmaster.delivery")

MOST_IDS = 20  # of jobs, in a line
_ID = re.compile(rb"[!-~]{1,128}")
_PLAIN = re.compile(r"[!#-<>-~]+")
# Unlike any of another master's; counting on is a good deal cheaper than random bytes for each.
_prefix = secrets.token_hex(5)
_numbers = itertools.count(1)


class Fields(dict[str, Any]):
    """A line's pairs, for `logger.info`: turned into text only when a handler wants it."""

    def __init__(self, what: str, pairs: Mapping[str, Any]) -> None:
        super().__init__((name, value) for name, value in pairs.items() if value not in (None, "", ()))
        self.what = what

    def __str__(self) -> str:
        return " ".join(f"{name}={_shown(value)}" for name, value in self.items())


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    elif isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    # Text from outside must not be able to make up another pair, or another line.
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def request_id(given: bytes | None) -> bytes:
    """The request's `x-request-id`, or a new one where it has none, or one that is not fit for a log."""
    if given is not None and _ID.fullmatch(given):
        return given
    return b"%s-%x" % (_prefix.encode(), next(_numbers))


def ids(jobs: Iterable[str | bytes]) -> dict[str, Any]:
    """The pairs that tell of jobs: `job`, or `jobs` and how many there are."""
    named = [job.decode("ascii", "replace") if isinstance(job, bytes) else str(job) for job in jobs]
    if len(named) <= 1:
        return {"job": named[0]} if named else {}
    return {"jobs": named[:MOST_IDS], "count": len(named)}
