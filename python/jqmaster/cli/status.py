"""How a command ends: exit codes, what it gives, and what it refuses."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_UNAVAILABLE, EXIT_TIMEOUT, EXIT_EXPIRED = range(7)
CODES = {
    "INVALID": EXIT_USAGE,
    "NOTFOUND": EXIT_NOT_FOUND,
    "EXPIRED": EXIT_EXPIRED,
    "UNAVAILABLE": EXIT_UNAVAILABLE,
    "VERSION": EXIT_UNAVAILABLE,
    "TIMEOUT": EXIT_TIMEOUT,
}
"""By the codes of errors; all others are EXIT_FAILED."""

Replies = Iterator[tuple[Any, Any]]
"""What a command gives: documents, and how people see them: a text, a table, or a function that prints."""
Coded = Generator[tuple[Any, Any], None, int]
"""The same, and an exit code in the end."""


class Refused(Exception):
    """What a command cannot do, in words for people."""

    def __init__(self, message: str, code: str = "FAILED") -> None:
        super().__init__(message)
        self.code = code
