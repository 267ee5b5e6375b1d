"""What an operation is, as the head of its script says it (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from jqmaster.manifest.types import Type, type_of

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


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def argument(self, name: str) -> Argument:
        """The one of this name. Raises KeyError."""
        for one in self.arguments:
            if one.name == name:
                return one
        raise KeyError(f"there is no @arg {name}")

    @property
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

    def is_for(self, roles: frozenset[Role], given: Iterable[str] = ()) -> bool:
        """Whether who has these roles may call it with these arguments."""
        return not self.lacking(roles, given)


@cache
def rights_of(roles: frozenset[Role]) -> frozenset[Role]:
    """The roles that have the rights of one of these."""
    return frozenset(right for role in roles for right in ROLES_OF[role])
