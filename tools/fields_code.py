"""What tools/fields.py makes of the table of a job's fields as source code: Lua for the engine, Python for the library;
and the words that its pages and schemas have in common with that."""

from __future__ import annotations

import json
import re
import textwrap

from stubs import annotation

from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.heads import lua_field
from jqmaster.manifest.types import PLAIN, Type

RARE = [field for field in FIELDS if field.rare]
TOLD = [field for field in RARE if field.told]
WIDTH = 116


def sentence(text: str) -> str:
    return re.sub("[a-z]", lambda first: first[0].upper(), text, count=1) if text[:1].islower() else text


def told_apart(*texts: str) -> str:
    """Sentences of a cell: the first as it is, the last without its full stop."""
    first, *rest = (text for text in texts if text)
    return ". ".join([first, *map(sentence, rest)])


# -- Lua ------------------------------------------------------------------------------------------


def lua_fields() -> str:
    """Those that every job has, and those that stand in a record's options."""
    usual, rare = ("".join(f"  {lua_field(one)},\n" for one in FIELDS if one.rare == is_rare) for is_rare in (0, 1))
    return f"M.FIELDS = {{\n{usual}}}\nM.OPTIONS = {{\n{rare}}}\n"


def lua_told() -> str:
    names = *(field.name for field in TOLD), "schedule", "schedule_ms", "webhook"
    return f"local TOLD_OPTIONS = {{ {', '.join(map(json.dumps, names))} }}\n"


# -- Python ---------------------------------------------------------------------------------------


def _member(name: str, kind: str, told: str) -> str:
    text = "\n    ".join(textwrap.wrap(f'"""{sentence(told)}."""', WIDTH))
    return f"    {name}: {kind}\n    {text}\n"


def options() -> str:
    """Members of `JobOptions`."""
    members = []
    for field in FIELDS[1:]:
        usual = field.python_default or field.usual
        told = told_apart(field.meaning + (f"; default: {usual}" if usual else ""), field.python)
        kind = "str | bool | Callable[..., str]" if field.name == "unique" else annotation(field.of).replace("'", '"')
        members.append(_member(field.name, f"{kind} | None", re.sub(r"\[(.*?)\]\(.*?\)", r"docs/\1", told)))
    return "".join(members)


def of_job(of: Type) -> str:
    """What a worker's `Job` has of a field that it need not have."""
    special = {"list": "tuple[str, ...] = ()", "map": "Mapping[str, str] = {}"}
    return special.get(of.kind) or f"{PLAIN[of.name].python} | None = None"


def members_of_job() -> str:
    """Members of the library's `Job` that few jobs have."""
    told = {field: told_apart(field.meaning, field.python) for field in TOLD}
    return "".join(_member(field.name, of_job(field.of), text) for field, text in told.items())
