"""How people see what an operation answers, as its fields are called: for commands that are made (`made`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from jqmaster.cli import show


def told(
    found: Mapping[str, Any] | Iterable[Mapping[str, Any]], columns: str = "", empty: str = "none", *, limit: int = 0
) -> tuple[Any, Any]:
    """A document, or the first of several, with how people see them. `columns`: `TITLE=field`, with `|` between, marks
    of a column (`show.Table`) behind the title; default: all fields."""
    now = show.now_ms()
    if isinstance(found, Mapping):
        return found, lambda: show.facts({name.removesuffix("_ms"): _text(found, name, show.both) for name in found})
    documents = list(islice(found, limit or None))
    fields = dict.fromkeys(name for one in documents for name in one)
    pairs = (
        [one.strip().rsplit("=", 1) for one in columns.split("|")]
        if columns
        else [[_title(one), one] for one in fields]
    )
    table = show.Table(" | ".join(title for title, _ in pairs), empty=empty)
    for one in documents:
        table.add(*(_text(one, name, lambda moment: show.when(moment, now)) for _, name in pairs))
    return documents, table


def _title(field: str) -> str:
    return field.removesuffix("_ms").replace("_", " ").upper()


def _text(document: Mapping[str, Any], field: str, moment: Any) -> str:
    """Of one field; blank where it is absent, and `-` where it is empty text."""
    match document.get(field):
        case None:
            return ""
        case str(text):
            return text or "-"
        case bool(flag):
            return "yes" if flag else "no"
        case int(number):
            return str(moment(number)) if field.endswith("_ms") else show.count(number)
        case float(number):
            return f"{number:g}"
        case value:
            return json.dumps(value, ensure_ascii=False, default=str) if value else ""
