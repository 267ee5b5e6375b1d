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

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import msgpack

from jqmaster.client.hints import Adapter, Annotations, Types
from jqmaster.errors import NotInstalled, brought_by

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

POSITIONAL = "*"  # no parameter can have this name
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Serializer(Protocol):
    """Turns values into bytes and back. The bytes are one whole MessagePack value, which matchers can look
    into; for another format make it MessagePack's bin type. Workers call it in their event loop."""

    def dumps(self, value: Any) -> bytes:
        """Raises TypeError, ValueError or OverflowError for what it cannot hold."""

    def loads(self, data: bytes) -> Any:
        """Raises ValueError for what is no such value."""


class MessagePack:
    """The default. A `datetime` with a time zone travels as MessagePack's timestamp, and arrives in UTC; what it has
    not, as text, lists and maps (docs/python.md says which).

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
        self.is_usual = default is None and ext_hook is msgpack.ExtType
        """Whether it packs and reads nothing that annotations do not tell of."""

    def dumps(self, value: Any) -> bytes:
        packed: bytes = msgpack.packb(value, default=self._default, datetime=True)
        return packed

    def loads(self, data: bytes) -> Any:
        read = functools.partial(msgpack.unpackb, data, strict_map_key=False, timestamp=3, ext_hook=self._ext_hook)
        try:
            return read()
        except TypeError:  # a list is the key of a map, as a tuple that was one arrives
            return read(object_pairs_hook=_keyed)
        except msgpack.UnpackException as error:
            raise ValueError(str(error) or type(error).__name__) from error


def _keyed(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {_key(key): value for key, value in pairs}


def _key(key: Any) -> Any:
    if isinstance(key, dict):
        key = list(key.items())
    return tuple(_key(part) for part in key) if isinstance(key, list | tuple) else key


def _native(value: Any) -> Any:
    if isinstance(value, datetime):  # a timestamp is for those with a zone; others are text
        return msgpack.Timestamp.from_datetime(value) if value.tzinfo is not None else value.isoformat()
    return _typed().native(value)


def _typed() -> Any:
    """The module for values of types that MessagePack has not: few programs need it. Raises NotInstalled."""
    with brought_by("worker", "a typed argument or result"):
        from jqmaster.client import typed

    return typed


class ResultType:
    """How the results of a function are read of which no more is known. Raises TypeError for a type whose values cannot
    be made of what travels."""

    name = ""
    returns_none = False

    def __init__(self, hint: Any) -> None:
        self._adapter = _typed().adapter_of(hint)

    def read_result(self, value: Any) -> Any:
        return value if self._adapter is None else self._adapter.make(value)


class Unfit(TypeError):
    """An argument cannot be sent, or nobody knows how; the message names it."""


class Signature:
    """A function's parameters: turns its arguments into a value and back. Raises TypeError like a call; and at once for
    a function whose parameters are not known, and for an annotation that cannot be honoured, unless that is left to
    the serializer (not `strict`)."""

    def __init__(self, function: Callable[..., Any], *, strict: bool = True) -> None:
        try:
            self._signature = inspect.signature(function)
        except ValueError:
            raise TypeError("its parameters are not known; wrap it in a function that names them") from None
        self._annotations = Annotations(function, self._signature)
        self._strict = strict
        parameters = self._signature.parameters.values()
        self._by_name = all(param.kind in _NAMED or param.kind is inspect.Parameter.VAR_KEYWORD for param in parameters)
        self._plain = all(param.kind in _NAMED for param in parameters)
        self._names = [param.name for param in parameters if param.kind is _NAMED[0]]
        self._positional = [param.name for param in parameters if param.kind in (param.POSITIONAL_ONLY, _NAMED[0])]
        self._known = {param.name for param in parameters}
        self._required = {param.name for param in parameters if param.default is param.empty} if self._plain else set()
        self._spread = next((param.name for param in parameters if param.kind is param.VAR_KEYWORD), "")
        self._rest = next((param.name for param in parameters if param.kind is param.VAR_POSITIONAL), "")
        self.is_settled = False
        """Whether all annotations could be evaluated."""
        with contextlib.suppress(NameError):  # its module may define it later
            self.is_settled = self._types is not None

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
        return frozenset(param.name for param in parameters if param.kind is param.KEYWORD_ONLY) | {POSITIONAL}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return self._signature.parameters

    @property
    def types(self) -> Types:
        """Raises TypeError for an annotation that cannot be honoured, Unfit for one that names what is not there."""
        try:
            return self._types
        except NameError as error:
            if not self._strict:
                types: Types = _typed().types_of(self._annotations, strict=False, last=True)
                return types
            advice = "have its module know it before the first job is made, not only type checkers"
            raise Unfit(f"{error}; {advice}") from None

    def misfit(self, error: TypeError, kwargs: Mapping[str, Any]) -> str:
        """`error`, with the signature, and the names that no parameter has: Python may tell another first."""
        names = [] if self._spread else sorted(kwargs.keys() - self._known)
        unknown = f"; there is no {', '.join(map(repr, names))}" if names else ""
        return f"{self._signature}: {error}{'' if 'unexpected' in str(error) else unknown}"

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """By name of the parameter, without defaults."""
        return self._signature.bind(*args, **kwargs)

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The value for these arguments; None when there are none. Raises Unfit as well."""
        _check(kwargs)
        adapters = self.types.parameters
        if self._plain and not kwargs and len(args) <= len(self._names):
            named = dict(zip(self._names, args, strict=False))
            if self._required <= named.keys():
                return (self._sent(named) if adapters else named) or None
        bound = self.bind(args, kwargs)
        if adapters:
            bound.arguments = self._sent(bound.arguments)
        if not self._by_name:
            return join(bound.args, bound.kwargs)
        named = dict(bound.arguments)
        if self._spread:
            named |= named.pop(self._spread, {})
        return named or None

    def decode(self, value: Any) -> Arguments:
        """The arguments that `value` stands for."""
        if self._plain and type(value) is dict and self._required <= value.keys() <= self._known:
            args: tuple[Any, ...] = ()
            kwargs = value
        else:
            args, kwargs = split(value)
            self._signature.bind(*args, **kwargs)
        if not self.types.parameters:
            return args, kwargs
        names = [*self._positional, *[self._rest] * len(args)]
        positional = tuple(self._made(name, argument) for name, argument in zip(names, args, strict=False))
        return positional, {name: self._made(name, argument) for name, argument in kwargs.items()}

    @functools.cached_property
    def _types(self) -> Types:
        if self._annotations.are_plain:
            return Types()
        try:
            types: Types = _typed().types_of(self._annotations, strict=self._strict)
        except NotInstalled:
            if self._strict:
                raise
            types = Types()  # the serializer may know them
        self._annotations.forget()
        return types

    def _sent(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: tuple(self._send(name, part) for part in value) if name == self._rest
            else {key: self._send(key, part) for key, part in value.items()} if name == self._spread
            else self._send(name, value)
            for name, value in arguments.items()
        }  # fmt: skip

    def _send(self, name: str, value: Any) -> Any:
        adapter = self._adapter(name)
        try:
            return value if adapter is None else adapter.send(value)
        except (TypeError, ValueError) as error:
            raise Unfit(f"{name}: {error}") from error

    def _made(self, name: str, value: Any) -> Any:
        adapter = self._adapter(name)
        try:
            return value if adapter is None else adapter.make(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def _adapter(self, name: str) -> Adapter | None:
        """Of a parameter, or of a keyword that has none of its own."""
        adapters = self.types.parameters
        return adapters.get(name) or (None if name in self._known else adapters.get(self._spread))


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
