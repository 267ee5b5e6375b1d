"""How a call's arguments become a job's argument, and back.

A job has one argument, any MessagePack value. Called `f(40, b=2)`, it is a map of parameter names,
`{"a": 40, "b": 2}`, so that matchers can name them (`argument.a`) and other languages write them easily.
Read is more than is written:

- a map: keyword arguments; its key `"*"`, if there, has a list of positional ones before them;
- a list: positional arguments;
- nil: no arguments;
- any other value: the one positional argument.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgpack

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

POSITIONAL = "*"  # no parameter can have this name
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Serializer(Protocol):
    """Turns values into bytes and back. The bytes are one whole MessagePack value, which matchers can look
    into; for another format make it MessagePack's bin type. One that waits for others, such as a store across a
    network, has `blocks = True`: workers and handles then call it in threads."""

    def dumps(self, value: Any) -> bytes:
        """Raises TypeError, ValueError or OverflowError for what it cannot hold."""

    def loads(self, data: bytes) -> Any:
        """Raises ValueError for what is no such value."""


class MessagePack:
    """The default. A `datetime` with a time zone travels as MessagePack's timestamp, and arrives in UTC; dataclasses,
    models of pydantic, UUID, Decimal, date, enum and sets as maps, text and lists. Tuples arrive as lists.

    `default(value)` instead makes something else of what MessagePack cannot hold; `ext_hook(code, data)` reads its
    extension types.
    """

    def __init__(
        self,
        *,
        default: Callable[[Any], Any] | None = None,
        ext_hook: Callable[[int, bytes], Any] = msgpack.ExtType,
    ) -> None:
        self._default = default or _native
        self._ext_hook = ext_hook

    def dumps(self, value: Any) -> bytes:
        packed: bytes = msgpack.packb(value, default=self._default, datetime=True)
        return packed

    def loads(self, data: bytes) -> Any:
        try:
            return msgpack.unpackb(data, strict_map_key=False, timestamp=3, ext_hook=self._ext_hook)
        except msgpack.UnpackException as error:
            raise ValueError(str(error) or type(error).__name__) from error


async def loads(serializer: Serializer, data: bytes, *, waits: bool = True) -> Any:
    """`serializer.loads(data)`, in a thread if it blocks; not if nobody may wait here."""
    if waits and getattr(serializer, "blocks", False):
        return await asyncio.to_thread(serializer.loads, data)
    return serializer.loads(data)


async def dumps(serializer: Serializer, value: Any, *, waits: bool = True) -> bytes:
    """`serializer.dumps(value)`, likewise."""
    if waits and getattr(serializer, "blocks", False):
        return await asyncio.to_thread(serializer.dumps, value)
    return serializer.dumps(value)


def _native(value: Any) -> Any:
    from jqmaster.app import typed  # few programs need it

    return typed.native(value)


class Signature:
    """A function's parameters: turns its arguments into a value and back. Raises TypeError like a call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self._by_name = all(one.kind in _NAMED or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
        self._plain = all(one.kind in _NAMED for one in parameters)
        self._names = [one.name for one in parameters if one.kind is _NAMED[0]]
        self._positional = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, _NAMED[0])]
        self._known = {one.name for one in parameters}
        self._required = {one.name for one in parameters if one.default is one.empty} if self._plain else set()
        self._spread = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
        self._rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)

    def __str__(self) -> str:
        return str(self._signature)

    @property
    def named(self) -> frozenset[str] | None:
        """What the argument of a job has as names; None where these may be any."""
        if self._spread:
            return None
        if self._by_name:
            return frozenset(self._known)
        parameters = self._signature.parameters.values()
        return frozenset(one.name for one in parameters if one.kind is one.KEYWORD_ONLY) | {POSITIONAL}

    def misfit(self, error: TypeError, kwargs: Mapping[str, Any]) -> str:
        """`error`, with the signature, and the names that no parameter has: Python may tell another first."""
        names = [] if self._spread is not None else sorted(kwargs.keys() - self._known)
        unknown = f"; there is no {', '.join(map(repr, names))}" if names else ""
        return f"{self._signature}: {error}{'' if 'unexpected' in str(error) else unknown}"

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The value for these arguments; None when there are none."""
        _check(kwargs)
        if self._plain and len(args) <= len(self._names):
            named = dict(zip(self._names, args, strict=False))
            if not kwargs and self._required <= named.keys():
                return named or None
        bound = self._signature.bind(*args, **kwargs)
        if not self._by_name:
            return join(bound.args, bound.kwargs)
        named = dict(bound.arguments)
        if self._spread is not None:
            named |= named.pop(self._spread, {})
        return named or None

    def decode(self, value: Any) -> Arguments:
        """The arguments that `value` stands for."""
        args, kwargs = split(value)
        if not (self._plain and not args and self._required <= kwargs.keys() <= self._known):
            self._signature.bind(*args, **kwargs)
        if not self.converters:
            return args, kwargs
        named = {name: self._made(name if name in self._known else self._spread, one) for name, one in kwargs.items()}
        names = [*self._positional, *[self._rest] * len(args)]
        return tuple(self._made(name, one) for name, one in zip(names, args, strict=False)), named

    @functools.cached_property
    def converters(self) -> Mapping[str, Callable[[Any], Any]]:
        """By name of a parameter, or `return`, what makes a value of the type that its annotation says."""
        from jqmaster.app import typed

        return typed.converters(self._function)

    def _made(self, name: str | None, value: Any) -> Any:
        convert = self.converters.get(name or "")
        try:
            return value if convert is None else convert(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def join(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value for arguments of a function whose parameters are not known."""
    _check(kwargs)
    if args and kwargs:
        return {POSITIONAL: list(args), **kwargs}
    return list(args) if args else dict(kwargs) or None


def split(value: Any) -> Arguments:
    """The arguments that a value stands for. Raises TypeError for a map that cannot be keyword arguments."""
    if value is None:
        return (), {}
    if isinstance(value, list):
        return tuple(value), {}
    if not isinstance(value, dict):
        return (value,), {}
    kwargs = dict(value)
    args = kwargs.pop(POSITIONAL, [])
    if not isinstance(args, list) or not all(isinstance(name, str) for name in kwargs):
        raise TypeError(f"expected a map from parameters' names, and {POSITIONAL!r} to a list")
    return tuple(args), kwargs


def _check(kwargs: Mapping[str, Any]) -> None:
    if POSITIONAL in kwargs:
        raise TypeError(f"{POSITIONAL!r} cannot be the name of an argument")
