"""Calling an operation by its name, with its arguments by theirs: what the head of its script says of it is how its
arguments are packed and its reply is read. Whatever carries the calls stands on this."""

from __future__ import annotations

import functools
import secrets
from collections import namedtuple
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, TypeAlias, Unpack

import msgpack

from jqmaster.engine import replies, secret, zones
from jqmaster.engine.operations import CallsByName
from jqmaster.engine.options import Bounds, meant, unix
from jqmaster.engine.packform import NIL
from jqmaster.engine.replies import Beat, Document, Note
from jqmaster.errors import Invalid
from jqmaster.manifest.contract import BLOBS, Operation, Type
from jqmaster.manifest.manifest import operations

Argument: TypeAlias = bytes | str | int
Spec: TypeAlias = Mapping[str, Any]
Holding: TypeAlias = tuple[str, str]  # job id, token


class Operations(CallsByName):
    """All operations of docs/operations.md, whatever carries the calls: a method for each."""

    actor: str | None = None
    """Who calls, for the trail of what operators changed. By way of a server that says whose key it is."""

    async def raw(self, operation: str, *arguments: Argument) -> Any:
        """Run one operation; its reply as the script gives it: bytes, integers, lists, None."""
        raise NotImplementedError

    async def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation: ``call("kick", ids=[…], delay=5)``. None is the same as absence, but for a value.

        Arguments may stand without their names, in the order of the head, those that must be there first. Durations
        are seconds or a ``timedelta``, moments Unix seconds or a datetime with a time zone. A list whose items have a
        value behind them, such as the ``jobs`` of ``enqueue``, holds pairs: ``[({"name": "mail"}, b"…")]``.

        The reply is read as the head says: a document is a dict, a page a ``Page``, a reply with several parts a named
        tuple. Raises what ``jqmaster.errors`` has, and TypeError for an argument that there is none of.
        """
        contract = contract_of(operation)
        given = taken(contract, arguments, named)
        if self.actor is not None and "actor" in contract.named:
            given.setdefault("actor", self.actor)
        sent = packed(contract, given)
        reply = read(contract, given, await self.raw(operation, *sent))
        while operation == "get" and len(reply) < len(sent):  # it told of as many jobs as fit
            reply += read(contract, given, await self.raw(operation, *sent[len(reply) :]))
        return reply

    async def each(self, operation: str, **named: Any) -> AsyncIterator[Any]:
        """All that an operation lists, from page to page."""
        cursor: str | None = None
        while cursor != "":
            page = await self.call(operation, **named, cursor=cursor)
            for document in page.documents:
                yield document
            cursor = page.cursor

    async def beat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> Beat:
        """Renew leases, with what some of the jobs have to say of themselves; and what was asked of the registered
        ``worker``: ``quiet``, ``stop`` or ``""``."""
        arguments: list[bytes] = []
        held: list[tuple[Any, ...]] = []
        for job in jobs:
            note = (notes or {}).get(job)
            said = given(progress=note.progress, message=note.message) if note else {}
            if note and note.argument is not None:
                said["argument"] = len(arguments)
                arguments.append(note.argument)
            held.append((*job, said) if note else job)
        answers, request = await self.call("heartbeat", worker, held, control=True, arguments=arguments)
        return Beat(answers, request)

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        """Create a key of the HTTP API; its document, and in it the key itself as ``key``, which nobody can ask for
        again.

        ``roles``: some of ``viewer``, ``pusher``, ``worker``, ``operator``, ``admin``. Raises Invalid, and Full when
        there are 1000.
        """
        new = secret.new()
        document = await self.call("grant", id=new.id, digest=new.digest, name=name, roles=roles, **bounds)
        return {**document, "key": new.text}


def contract_of(operation: str) -> Operation:
    """What the head of its script says. Raises LookupError."""
    try:
        return operations()[operation]
    except KeyError:
        raise LookupError(f"there is no operation {operation}{meant(operation, operations())}") from None


def taken(contract: Operation, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, those that are absent left out. Raises TypeError."""
    known = contract.named
    if len(arguments) > len(known):
        raise TypeError(f"{contract.name} takes at most {len(known)} arguments, got {len(arguments)}")
    given = dict(zip(known, arguments, strict=False))
    for name in named:
        if name not in known:
            raise TypeError(
                f"{contract.name}: no such argument: {name}{meant(name, known)}; there are: {', '.join(known)}"
            )
        if name in given:
            raise TypeError(f"{contract.name}: {name} is given twice")
    given |= named
    missing = [name for name, argument in known.items() if not argument.optional and given.get(name) is None]
    if missing and known[missing[0]].type != "any":
        raise TypeError(f"{contract.name}: {missing[0]} is missing")
    return {name: value for name, value in given.items() if value is not None or known[name].type == "any"}


# -- arguments ----------------------------------------------------------------------------------------------------


def packed(
    contract: Operation, given: Mapping[str, Any], packer: Callable[[Spec], bytes] | None = None
) -> list[Argument]:
    """The script's own arguments, the spec packed by `pack` or another. Raises Invalid, naming what MessagePack cannot
    hold."""
    known = contract.named
    behind = contract.behind
    spec = {name: value for name, value in given.items() if name not in behind}
    for name, value in spec.items():
        if isinstance(value, datetime):
            spec[name] = unix(value) if known[name].type == "moment" else round(unix(value) * 1000)
    if "timezone" in spec:
        spec = zones.with_rule(spec)
    arguments: list[Argument] = []
    for position in contract.positions:
        if position == "spec" or (position == "[spec]" and spec):
            arguments.append((packer or pack)(spec))
        elif position.endswith("..."):
            name = position[:-3]
            if isinstance(values := given.get(name, ()), str | bytes):
                raise TypeError(f"{contract.name}: {name}: expected a list, got {values!r}")
            arguments += flat(values, name)
        elif position != "[spec]":
            value = given.get(position)
            if value is None and contract.reply(given) is not contract.replies[0]:
                continue  # another call, to which it does not belong
            if isinstance(value, Mapping):
                value = pack(value, position)
            elif value is None:
                value = NIL if known[position].default == "nil" else b""
            arguments.append(value)
    return arguments


def flat(values: Iterable[Any], path: str) -> list[Argument]:
    """Values as arguments one behind the other: maps packed, and of pairs and lists the parts. A map with a list behind
    its value says in `enqueue` how many that are."""
    found: list[Argument] = []
    for index, value in enumerate(values):
        if isinstance(value, (bytes, str, int)):
            found.append(value)
            continue
        spec, *blobs = (value,) if isinstance(value, Mapping) else value
        rest = blobs.pop() if blobs and not isinstance(blobs[-1], bytes) else ()
        found += (pack({**spec, "enqueue": len(rest)} if rest else spec, f"{path}[{index}]"), *blobs)
        if rest:
            found += flat(rest, f"{path}[{index}].enqueue")
    return found


def pack(spec: Any, path: str = "") -> bytes:
    """Pack a spec. Raises Invalid for what MessagePack cannot hold."""
    try:
        packed: bytes = msgpack.packb(spec, default=_within)
    except (TypeError, ValueError, OverflowError) as problem:
        for name, value in spec.items() if isinstance(spec, Mapping) else ():
            pack(value, f"{path}.{name}".lstrip("."))  # which names the part that is wrong
        raise Invalid(f"cannot be packed as MessagePack: {problem}", path or None) from problem
    return packed


def _within(value: Any) -> Any:
    """What a spec holds otherwise: durations are seconds there, sets are lists."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Set):
        return list(value)
    raise TypeError(f"there is no type for {type(value).__name__}")


def new_request() -> str:
    """A request token. At the end of a spec the engine knows one of this length, and does not parse the rest again."""
    return secrets.token_hex(8)


def given(**fields: Any) -> dict[str, Any]:
    """Those fields that are not None: an absent field means its default."""
    return {name: value for name, value in fields.items() if value is not None}


# -- replies ------------------------------------------------------------------------------------------------------


def read(contract: Operation, given: Mapping[str, Any], reply: Any) -> Any:
    """A script's reply as its head says."""
    if contract.name == "finish":
        return replies.finished(reply, len(given.get("outcomes", ())))
    told = contract.replies[0] if len(contract.replies) == 1 else contract.reply(given)
    return _decoded(told.of, contract.name, reply)


def _decoded(type_: Type, operation: str, reply: Any) -> Any:
    if reply is None and type_.optional:
        return None
    match type_.kind:
        case "document":
            return replies.document(reply) if type_.name in BLOBS else replies.plain_value(reply)
        case "list" | "page":
            assert type_.of is not None
            decode = functools.partial(_decoded, type_.of, operation)
            return replies.page(reply, decode) if type_.kind == "page" else [decode(one) for one in reply]
        case "members" if len(type_.members) > 1:
            values = (_decoded(of, operation, one) for (_, of), one in zip(type_.members, reply, strict=True))
            return _reply_class(operation, tuple(name for name, _ in type_.members))(*values)
        case "members":
            return _decoded(type_.members[0][1], operation, reply)
    plain: Callable[[Any], Any] = _PLAIN.get(type_.name, replies.text)
    return plain(reply)


@functools.cache
def _reply_class(operation: str, names: tuple[str, ...]) -> Callable[..., Any]:
    return namedtuple(reply_name(operation), names)


def reply_name(operation: str) -> str:
    """What a reply of several parts is called."""
    return f"{operation.capitalize()}Reply"


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("integer", "ms", "moment_ms"), int),
    "flag": bool,
    "record": bytes,
    "nothing": lambda _: None,
    "states": replies.states,
    "enqueued": replies.enqueued,
    "picked": replies.picked,
    "assigned": list,
    "result": replies.result,
}
