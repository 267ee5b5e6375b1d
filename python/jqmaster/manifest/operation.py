"""What an operation of the HTTP API is: its path, its fields, its answer, and how it meets a script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

Role = Literal["viewer", "pusher", "worker", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "pusher", "worker", "operator", "admin")
# Whose rights each has.
ROLES_OF: Mapping[Role, tuple[Role, ...]] = MappingProxyType(
    {**{role: (role,) for role in ROLES}, "operator": ("operator", "viewer"), "admin": ROLES}
)
# Scripts whose spec takes `actor`: who calls them stands in the trail.
NOTED = frozenset((
    "bulk", "cancel", "config", "constrain", "discard", "forget", "free", "grant", "hold", "kick", "mark", "queue",
    "retry", "revoke", "schedule", "subscribe", "unconstrain", "unschedule", "unsubscribe", "worker",
))  # fmt: skip
Place = Literal["path", "query", "header", "body"]
Kind = Literal[
    "text", "cursor", "states", "integer", "moment", "number", "flag", "list", "map", "value", "raw", "zone", "matcher"
]  # fmt: skip
Shape = Literal["nothing", "document", "first", "page", "list", "state", "states", "values", "own"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@cache
def _rights_of(roles: frozenset[Role]) -> frozenset[Role]:
    return frozenset(right for role in roles for right in ROLES_OF[role])


class Type(NamedTuple):
    """What a field may be. `least` and `most` are of a number, or of a text's or a list's length. `schema` is
    the component of the OpenAPI document that says it, for what is no plain value.

    Some kinds are more than their JSON type. `cursor`: text; empty is the same as none. `states`: text, several
    with commas between. `moment`: milliseconds, since 1970 where the schema says so. `matcher`: a map, as the text of
    its JSON. `value`: any one value, not looked into, an argument of its own behind the script's spec. `raw`:
    likewise, and within the spec. `zone`: text, a time zone whose rule goes with it.
    """

    kind: Kind
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    schema: str = ""


class Field(NamedTuple):
    """A part of a request. `to` is its place in the script's spec: its own name, a path such as `where.queue` or
    `ids[0]`, or "" for what only the master looks at. `default`: what its absence means; of a value, the bytes
    that the script gets then. `example`: what stands there in tests, `{job}` or `{worker}` for an id of theirs."""

    name: str
    type: Type
    place: Place
    to: str
    required: bool = False
    default: Any = None
    meaning: str = ""
    example: str = ""


class Reply(NamedTuple):
    """How a script's reply becomes a body.

    `nothing`: none. `document`: the reply itself, a document. `first`: of a page that was asked for one id its
    document, or 404. `page`: `{names[0]: [document, …], cursor}`;
    where the script tells a list instead of a document, `columns` names its items. `list`: `{names[0]: [document, …]}`.
    `state`: of a script that answers for each of its jobs, here one: `{status}`, 404 or 409. `states`: the same
    for many, `{jobs: [state, …]}`; with `where`, `{cursor, changed}`. `values`: `{name: value, …}`, a map of the
    reply's parts in order. `own`: none of these; a map with some of `names`, or where there are none another
    value, or what is of the type `media`.
    """

    shape: Shape
    names: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (200,)
    media: str = ""
    columns: tuple[str, ...] = ()


class Operation(NamedTuple):
    """One method of one path.

    `script` is called with a spec made of the fields and of what is `fixed`; a script that takes a bare id has
    `bare`. `variant` tells operations of one script apart. `errors` are codes beside those that any such request
    may meet. It needs a key of `role` or of one of those in `also`, or of one that has their rights
    (`ROLES_OF`); none where there is no role. `body` names the component of the OpenAPI document that
    the body is, where that is more than a map of the fields. `by_hand` says why the server has a handler for it;
    "" where it needs none. `hot`: worth the short way around Quart. Without `may_be_empty` there must be a body.

    `made`: `make generate` writes its method of the library, whose text says this beside the summary (`-`: nothing),
    and its command, if it only reads. `shown`: the columns of what that lists, each `TITLE=field` (cli/show.py), and in
    a second line what is said where there is nothing; default: all fields.
    """

    script: str
    variant: str
    method: str
    path: str
    role: Role | None
    summary: str
    reply: Reply
    fields: tuple[Field, ...] = ()
    fixed: Mapping[str, Any] = _NOTHING
    errors: tuple[str, ...] = ("INVALID",)
    body: str = ""
    by_hand: str = ""
    bare: bool = False
    hot: bool = False
    may_be_empty: bool = False
    also: tuple[Role, ...] = ()
    made: str = ""
    shown: str = ""

    @property
    def name(self) -> str:
        """The script's, with the variant behind a dot; of an operation that calls none, the variant alone."""
        return ".".join(part for part in (self.script, self.variant) if part)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles for whom it is, beside those that have their rights."""
        return (self.role, *self.also) if self.role else ()

    def is_for(self, roles: frozenset[Role]) -> bool:
        """Whether who has these roles may call it."""
        return self.role is None or self.role in roles or not _rights_of(roles).isdisjoint(self.roles)

    @property
    def says_actor(self) -> bool:
        """Whether its script notes who calls."""
        return self.script in NOTED and (self.script != "config" or self.method != "GET")

    @property
    def is_plain(self) -> bool:
        """Whether its script takes one spec, made of its fields, and nothing else."""
        return not (self.bare or self.by_hand or any(one.type.kind == "value" for one in self.fields))

    @property
    def takes_body(self) -> bool:
        """Whether its body is MessagePack or JSON."""
        return bool(self.body) or any(one.place == "body" for one in self.fields)

    def at(self, place: Place) -> tuple[Field, ...]:
        """The fields that stand there."""
        return tuple(one for one in self.fields if one.place == place)


# A name is one segment of a path, whatever is in it. Browsers and many clients take `.` and `..`, percent-encoded or
# not, for steps within the path. So these have a `~` in front there, and what would be mistaken for them one more.
_DOTS = re.compile(r"~*\.\.?")


def segment(name: str) -> str:
    """A name as it stands in a path: `a/b` is `a%2Fb`, `..` is `~..`, `~.` is `~~.`."""
    return quote(f"~{name}" if _DOTS.fullmatch(name) else name, safe="")


def name_of(text: str) -> str:
    """The name that a segment, percent-decoded already, stands for."""
    return text[1:] if text.startswith("~") and _DOTS.fullmatch(text) else text
