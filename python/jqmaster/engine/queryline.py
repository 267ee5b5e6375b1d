"""A line that says which jobs are meant, as people type it: `customer.id:acme worker:mail-1 slower:30s "no host"`.

The web UI reads the same (ui/static/query.js); tests/js/querylines.json holds both to it.
"""

from __future__ import annotations

import re
from typing import Any

from jqmaster.errors import Invalid

_TOKEN = re.compile(r'(?:([^\s":]+):)?("(?:[^"\\]|\\.)*"|\S+)')
_ESCAPE = re.compile(r"\\(.)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BOUND = re.compile(rf"(>=|<=|>|<)({_NUMBER.pattern})")
_MS = {"ms": 1, "s": 1000, None: 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_BOUNDS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_PLAIN = {"queue": "queue", "name": "name", "tag": "tag", "group": "group", "worker": "worker", "error": "message"}
_SPANS = {"slower": "slower_ms", "older": "to_ms", "newer": "from_ms"}


def where_of(line: str, now_ms: int) -> dict[str, Any]:
    """`where` of docs/finding.md. Raises Invalid.

    `queue`, `name`, `tag`, `group`, `worker`, `status` (several with commas), `error` (its message contains it),
    `slower`, `older`, `newer` (durations) name what they are; `queue` and `name` may have `*`. Any other key is a path
    into the argument; its value may have `*`, or begin with `>`, `>=`, `<`, `<=`. What has no key is text in the
    argument. Quotes make one value of several words, and text of what looks like a number.
    """
    where: dict[str, Any] = {}
    words: list[str] = []
    for key, raw in _TOKEN.findall(line):
        quoted = raw.startswith('"')
        value = _ESCAPE.sub(r"\1", raw[1:-1]) if quoted and len(raw) > 1 else raw
        if not key:
            words.append(value)
            continue
        field, wanted = _condition(key, value, quoted, now_ms)
        place = where.setdefault("match", {}) if field.startswith("match.") else where
        name = field.removeprefix("match.")
        if name in place:
            raise Invalid(f"{key} is given twice", "where")
        place[name] = wanted
    if words:
        where["argument"] = " ".join(words)
    return where


def _condition(key: str, value: str, quoted: bool, now_ms: int) -> tuple[str, Any]:
    if key in ("queue", "name") and "*" in value and not quoted:
        return f"match.{key}", {"glob": value}
    if key in _PLAIN:
        return _PLAIN[key], value
    if key == "status":
        return "status", value.split(",")
    if key in _SPANS:
        ms = _ms(key, value)
        return _SPANS[key], ms if key == "slower" else now_ms - ms
    path = key if key.startswith("argument.") else f"argument.{key}"
    return f"match.{path}", value if quoted else _operand(value)


def _operand(value: str) -> Any:
    bound = _BOUND.fullmatch(value)
    if bound:
        return {_BOUNDS[bound[1]]: _number(bound[2])}
    if "*" in value:
        return {"glob": value}
    if _NUMBER.fullmatch(value) and abs(_number(value)) < 2**63:
        return [_number(value), value]
    return [_CONSTANTS[value], value] if value in _CONSTANTS else value


def _number(text: str) -> int | float:
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _ms(key: str, value: str) -> int:
    found = _DURATION.fullmatch(value)
    if not found:
        raise Invalid(f"{key}: expected a duration such as 30s, 5m or 2h, got {value!r}", "where")
    return round(float(found[1]) * _MS[found[2] or None])
