"""What tools/fields.py makes of the table of a job's fields as source code: Lua for the engine, Python for the library;
and the words that its pages and schemas have in common with that."""

from __future__ import annotations

import json
import re
import textwrap

from kinds import KINDS, filled

from jqmaster.manifest.fields import FIELDS, Field

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


def lua_field(field: Field) -> str:
    """As jqlua/base/fields.lua has them."""
    words = " ".join(word.name for word in field.words)
    made = '{ "queue" }' if field.name == "queue" else filled(KINDS[field.kind].lua, field, words)
    required = made.replace(" }", ", required = true }") if field.name == "name" else made
    return f"  {field.name} = {required},\n"


def lua_fields() -> str:
    """Those that every job has, and those that stand in a record's options."""
    usual = "".join(lua_field(field) for field in FIELDS if not field.rare)
    return f"M.FIELDS = {{\n{usual}}}\nM.OPTIONS = {{\n{''.join(map(lua_field, RARE))}}}\n"


def lua_told() -> str:
    names = *(field.name for field in TOLD), "schedule", "schedule_ms", "webhook"
    return f"local TOLD_OPTIONS = {{ {', '.join(map(json.dumps, names))} }}\n"


# -- Python ---------------------------------------------------------------------------------------


def annotation(field: Field) -> str:
    """What the library takes for a field."""
    words = ", ".join(json.dumps(word.name) for word in field.words)
    special = {"unique": "str | bool | Callable[..., str]"}
    return special.get(field.name, filled(KINDS[field.kind].python, field, words)) + " | None"


def _member(name: str, kind: str, told: str) -> str:
    text = "\n    ".join(textwrap.wrap(f'"""{sentence(told)}."""', WIDTH))
    return f"    {name}: {kind}\n    {text}\n"


def options() -> str:
    """Members of `JobOptions`."""
    members = []
    for field in FIELDS[1:]:
        usual = field.python_default or field.usual
        told = told_apart(field.meaning + (f"; default: {usual}" if usual else ""), field.python)
        members.append(_member(field.name, annotation(field), re.sub(r"\[(.*?)\]\(.*?\)", r"docs/\1", told)))
    return "".join(members)


def members_of_job() -> str:
    """Members of the library's `Job` that few jobs have."""
    return "".join(
        _member(field.name, kind if "=" in kind else f"{kind} | None = None", told)
        for field in TOLD
        for kind in [KINDS[field.kind].job or KINDS[field.kind].python]
        for told in [told_apart(field.meaning, field.python)]
    )
