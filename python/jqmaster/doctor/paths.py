"""Paths of constraints that lead nowhere in the jobs they are about: most likely they are misspelt.

Seen from outside, by a sample: for the engine such a job is one that the constraint is not about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jqmaster.engine.replies import Document

SAMPLED = 10
"""newest jobs of a queue that are looked at"""
ENOUGH = 3
"""of fewer one cannot tell"""

_SEGMENT = re.compile(r"(?:[^.\\]|\\.)+", re.DOTALL)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")


def text_of(constraint: Document, subject: str) -> tuple[bool, str | None]:
    """Whether one text, or none, is all that a constraint wants of `name` or `queue`; and that text."""
    wanted = constraint["match"].get(subject)
    if isinstance(wanted, dict) and wanted.keys() == {"eq"}:
        wanted = wanted["eq"]
    return wanted is None or (isinstance(wanted, str) and "*" not in wanted), wanted


def paths_of(constraint: Document) -> Iterator[tuple[str, str]]:
    """Field and path of what has to be in a job's argument for the constraint to be about it, or to cost what
    it says."""
    for path, condition in constraint["match"].items():
        if path.startswith("argument.") and not _holds_for_none(condition):
            yield "match", path
    if isinstance(constraint.get("cost"), str):
        yield "cost", constraint["cost"]


def _holds_for_none(condition: Any) -> bool:
    if not isinstance(condition, dict):
        return False
    return all(operator == "ne" or (operator, operand) == ("exists", False) for operator, operand in condition.items())


def leads_somewhere(path: str, argument: Any) -> bool:
    """Whether an argument has a value at a path."""
    segments = [re.sub(r"\\(.)", r"\1", text) for text in _SEGMENT.findall(path)][1:]
    value = argument
    for segment in segments:
        number = int(segment) if _INTEGER.fullmatch(segment) else None
        if isinstance(value, dict):
            if segment in value:
                value = value[segment]
            elif number is not None and number in value:
                value = value[number]
            else:
                return False
        elif isinstance(value, list | tuple) and number is not None and 0 <= number < len(value):
            value = value[number]
        else:
            return False
    return True


def that_lead_nowhere(constraint: Document, arguments: list[Any]) -> Iterator[tuple[str, str]]:
    """Field and path of those that lead nowhere in all of the arguments."""
    if len(arguments) >= ENOUGH:
        for field, path in paths_of(constraint):
            if not any(leads_somewhere(path, argument) for argument in arguments):
                yield field, path
