"""What an operation is, as the head of its script says it (docs/operations.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal

Role = Literal["viewer", "pusher", "worker", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "pusher", "worker", "operator", "admin")
# Whose rights each has.
ROLES_OF: Mapping[Role, tuple[Role, ...]] = MappingProxyType(
    {**{role: (role,) for role in ROLES}, "operator": ("operator", "viewer"), "admin": ROLES}
)
SERVER = "server"
"""Stands where a role does: no key lets anybody; servers do it, and who reaches Redis as an admin."""
ANYBODY = "anybody"
"""Likewise: no key is needed."""

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
    """What an argument may be, and what a reply holds.

    ``text``, ``job`` and the like are plain, as are replies of a shape of their own, which engine/replies.py reads;
    tools/vocabulary.py says what there is. ``leave|cancel`` is one of these words; ``list<job>``, ``map<seconds>`` and
    ``page<Job>`` hold others (``of``), and so does ``set<job>``, a list without duplicates; ``{kicked: integer, more:
    flag}`` has members, which a script replies as a list, and one alone without a list; a name with a capital is a
    document of openapi/schemas.yaml. With a ``?`` it may be absent.
    """

    kind: Literal["plain", "choice", "document", "list", "map", "page", "members"]
    name: str = ""
    of: Type | None = None
    words: tuple[str, ...] = ()
    members: tuple[tuple[str, Type], ...] = ()
    optional: bool = False
    distinct: bool = False


@cache
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """``least`` and ``most`` are of a number, or of how long a text or list is. ``default``: what its absence means
    to the script; None where that is no value."""

    name: str
    type: str
    optional: bool = False
    least: float | None = None
    most: float | None = None
    default: Any = None
    meaning: str = ""

    @property
    def of(self) -> Type:
        """Its type, read."""
        return type_of(self.type)

    @property
    def header(self) -> str:
        """The header in which it may stand instead of in a body; "" for none."""
        return {("worker", "worker"): "worker-id", ("request", "token"): "Idempotency-Key"}.get(
            (self.name, self.type), ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """``name``: how the HTTP API calls a list or a page; ``given``: this is the reply when one of these arguments is
    there."""

    type: str
    name: str = ""
    given: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def of(self) -> Type:
        """Its type, read."""
        return type_of(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """``path``: which argument, ``ids[i]``; ``field`` for any of them."""

    code: str
    path: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The request of the HTTP API that an operation has.

    ``path`` has up to one argument in braces, ``/job/{id}``. The others stand in the query of GET and DELETE, and as a
    map in the body otherwise. One that is called ``body`` is the body itself; others stand in the query then.
    ``parameters`` are the request's own, which no script gets.
    """

    method: str
    path: str
    parameters: tuple[Argument, ...] = ()

    @property
    def place(self) -> str:
        """What stands in the path; "" for nothing."""
        return self.path.partition("{")[2].partition("}")[0]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """``positions``: what the script's arguments are in order, ``spec`` for a map of all that are not named there;
    ``[spec]`` is left out when it is empty, ``jobs...`` stands for as many as there are. ``restricted``: arguments that
    need another role. ``is_free``: a key that is bound to queues may call it although it names none. ``over``: how
    it goes over the partitions of a cluster. ``conflict``: what the state CONFLICT of a job means."""

    name: str
    summary: str
    description: str = ""
    arguments: tuple[Argument, ...] = ()
    positions: tuple[str, ...] = ("spec",)
    replies: tuple[Reply, ...] = ()
    errors: tuple[Error, ...] = ()
    flags: str = "write"
    is_function: bool = False
    roles: tuple[str, ...] = ()
    restricted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_free: bool = False
    over: str = ""
    conflict: str = ""
    routes: tuple[Route, ...] = ()

    def stand(self, route: Route) -> tuple[list[Argument], list[Argument]]:
        """What stands in the query of a request, and in its body. What no client says itself stands nowhere."""
        hidden = {route.place, *(name for name, roles in self.restricted.items() if roles == (SERVER,))}
        told = [one for one in self.arguments if one.type != "actor" and one.name not in hidden]
        told += route.parameters
        whole = [one for one in told if one.name == "body"]
        if whole:
            return [one for one in told if one.name != "body" and not one.header], whole
        return (told, []) if route.method in ("GET", "DELETE") else ([], told)

    @cached_property
    def named(self) -> Mapping[str, Argument]:
        """The arguments by name, those first that must be there."""
        return {one.name: one for one in sorted(self.arguments, key=lambda argument: argument.optional)}

    @cached_property
    def behind(self) -> tuple[str, ...]:
        """The arguments that stand beside the spec."""
        return tuple(one.removesuffix("...") for one in self.positions if one not in ("spec", "[spec]"))

    def reply(self, given: Mapping[str, Any]) -> Reply:
        """The reply when these arguments are there. A flag that is false is not."""
        names = {name for name, value in given.items() if value is not None and value is not False}
        return next((one for one in reversed(self.replies) if names.intersection(one.given)), self.replies[0])

    def lacking(self, roles: frozenset[Role], given: Iterable[str] = ()) -> tuple[str, ...]:
        """One of these roles needs who has but those to call it with these arguments; none are lacking where it is
        empty."""
        rights = {*rights_of(roles), ANYBODY}
        asked = [self.roles, *(self.restricted[name] for name in given if name in self.restricted)]
        return next((needed for needed in asked if rights.isdisjoint(needed)), ())


@cache
def rights_of(roles: frozenset[Role]) -> frozenset[Role]:
    """The roles that have the rights of one of these."""
    return frozenset(right for role in roles for right in ROLES_OF[role])
