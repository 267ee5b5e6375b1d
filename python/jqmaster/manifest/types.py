"""The vocabulary of heads: what an argument may be, and what a reply holds.

``text``, ``job`` and the like are plain, as are replies of a shape of their own, which engine/replies.py reads;
tools/vocabulary.py says what there is. ``leave|cancel`` is one of these words; ``list<job>``,
``map<seconds>`` and ``page<Job>`` hold others, and so does ``set<job>``, a list without duplicates; ``{kicked: integer,
more: flag}`` has members, which a script replies as a list, and one alone without a list; a name with a capital is a
document of openapi/schemas.yaml. With a ``?`` it may be absent.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

Kind = Literal["plain", "choice", "document", "list", "map", "page", "members"]

BLOBS = frozenset(("Job", "FoundJob", "Schedule"))
"""Documents that hold packed values, which stay as they are: ``argument``, ``result``, ``error``."""

CONDITIONS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "queue": ("queue", ""),
    "status": ("text", "A state, or several with commas between."),
    "name": ("name", ""),
    "tag": ("name", ""),
    "group": ("name", "Of the last failure; finds only jobs that are `error`."),
    "from_ms": ("moment_ms", "Enqueued then or later."),
    "to_ms": ("moment_ms", "Enqueued before."),
    "message": ("text", "Contained in the last failure's."),
    "worker": ("name", "Who runs it, or ran it last."),
    "slower_ms": ("ms", "It ran, or runs, for longer than so many ms."),
    "argument": ("text", "Text that its argument contains."),
    "match": ("Matcher", "A map of conditions, as of a constraint; JSON."),
})  # fmt: skip
"""The members of the document `Where`, which stand in a query each by itself."""


@dataclass(frozen=True, slots=True)
class Type:
    """``name``: of a plain type, an own reply or a document; ``of``: what a list, a map or a page holds."""

    kind: Kind
    name: str = ""
    of: Type | None = None
    words: tuple[str, ...] = ()
    members: tuple[tuple[str, Type], ...] = ()
    optional: bool = False
    distinct: bool = False
    """No entry of the list may be there twice."""


@functools.cache
def type_of(text: str) -> Type:
    """Read a type. Raises ValueError for what is none."""
    if text.endswith("?"):
        found = type_of(text[:-1])
        return replace(found, optional=True)
    if match := re.fullmatch(r"(list|set|map|page)<(.+)>", text):
        kind = "list" if match[1] == "set" else match[1]
        return Type(kind, of=type_of(match[2]), distinct=match[1] == "set")  # type: ignore[arg-type]
    if match := re.fullmatch(r"\{(.+)\}", text):
        pairs = (one.partition(":") for one in re.split(r",\s*(?![^<{]*[>}])", match[1]))
        return Type("members", members=tuple((name.strip(), type_of(of.strip())) for name, _, of in pairs))
    if not re.fullmatch(r"\w+(\|\w+)*", text):
        raise ValueError(f"there is no type {text}")
    if "|" in text:
        return Type("choice", words=tuple(text.split("|")))
    return Type("document" if text[0].isupper() else "plain", text)
