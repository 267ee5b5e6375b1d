"""How a call's arguments become a job's argument, and back.

A job has one argument, any MessagePack value. Called `f(40, b=2)`, it is a map of parameter names,
`{"a": 40, "b": 2}`, so that matchers can name them (`argument.a`) and other languages write them easily.
Read is more than is written:

- a map: keyword arguments; its key `"*"`, if there, has a list of positional ones before them;
- a list: positional arguments;
- nil: no arguments;
- any other value: the one positional argument.

Values of the types that annotations name travel as what MessagePack has, and are made again on arrival: by msgspec, and
models of pydantic by themselves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import types
from collections import abc
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime
from hashlib import blake2s
from inspect import Parameter
from typing import Any, Literal, LiteralString, Never, NoReturn, Protocol, Union, Unpack, get_args, get_origin

import msgpack

from jqmaster.errors import NotInstalled, brought_by
from jqmaster.worker.ending import FollowUp, Move

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

POSITIONAL = "*"  # no parameter can have this name
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_SCALARS = (bool, int, float, str, bytes, type(None))
"""What MessagePack has and Python tells apart."""
_CONTAINERS = (list, dict, Sequence, abc.MutableSequence, abc.Collection, Iterable, Mapping, abc.MutableMapping)
_PLAIN = {*_SCALARS, *_CONTAINERS, object, inspect.Parameter.empty, Any, Never, NoReturn, LiteralString, None}
_UNIONS = (Union, types.UnionType)
_AS_TEXT = {"pathlib", "ipaddress", "fractions", "pydantic.networks"}
"""Modules whose classes read what `str` makes of their values, and of which msgspec knows nothing."""
_BYTES = (bytes, bytearray, memoryview)


class Serializer(Protocol):
    """Turns values into bytes and back. The bytes are one whole MessagePack value, which matchers can look
    into; for another format make it MessagePack's bin type. Workers call it in their event loop."""

    def dumps(self, value: Any) -> bytes:
        """Raises TypeError, ValueError or OverflowError for what it cannot hold."""

    def loads(self, data: bytes) -> Any:
        """Raises ValueError for what is no such value."""


class MessagePack:
    """The default. A `datetime` with a time zone travels as MessagePack's timestamp, and arrives in UTC; what it has
    not, as text, lists and maps (docs/python.md says which)."""

    def dumps(self, value: Any) -> bytes:
        try:
            packed: bytes = msgpack.packb(value, default=_native, datetime=True)
        except OverflowError:
            raise ValueError("an integer has more than 64 bits, which MessagePack has not") from None
        return packed

    def loads(self, data: bytes) -> Any:
        read = functools.partial(msgpack.unpackb, data, strict_map_key=False, timestamp=3)
        try:
            try:
                return read()
            except TypeError:  # a list is the key of a map, as a tuple that was one arrives
                return read(object_pairs_hook=lambda pairs: {_key(key): value for key, value in pairs})
        # A map may be a key there, and a moment in a year that Python has not.
        except (msgpack.UnpackException, TypeError, OverflowError) as error:
            raise ValueError(str(error) or type(error).__name__) from error


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key


def _native(value: Any) -> Any:
    if isinstance(value, datetime):  # a timestamp is for those with a zone; others are text
        return msgpack.Timestamp.from_datetime(value) if value.tzinfo is not None else value.isoformat()
    return native(value)


class Signature:
    """A function's parameters: turns its arguments into a value and back. Raises TypeError like a call; and at once for
    a function whose parameters are not known, and for an annotation that cannot be honoured."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            self._signature = inspect.signature(function)
        except ValueError:
            raise TypeError("its parameters are not known; wrap it in a function that names them") from None
        self.bind = self._signature.bind
        self._function = function
        self._parameters = self._signature.parameters
        self.returns_none = self._signature.return_annotation in (None, "None")
        parameters = self._parameters.values()
        self._plain = all(param.kind in NAMED for param in parameters)
        self._names = [param.name for param in parameters if param.kind is NAMED[0]]
        self._required = {param.name for param in parameters if param.default is param.empty}
        self._by_name = all(param.kind in (*NAMED, param.VAR_KEYWORD) for param in parameters)
        with contextlib.suppress(NameError):  # its module may define it later
            _ = self._converters

    def __str__(self) -> str:
        return str(self._signature)

    @property
    def converters(self) -> Mapping[str, Converter]:
        """By the name of a parameter, and of its `return`; what has none travels as it is. Raises TypeError for an
        annotation that names what is not there."""
        try:
            return self._converters
        except NameError as error:
            advice = "have its module know it before the first job is made, not only type checkers"
            raise TypeError(f"{error}; {advice}") from None

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The value for these arguments; None when there are none."""
        if self._plain and not kwargs and not self.converters and len(args) <= len(self._names):
            named = dict(zip(self._names, args, strict=False))
            if self._required <= named.keys():
                return named or None
        bound = self.bind(*args, **kwargs)
        self._convert(bound.arguments, "send")
        if not self._by_name:
            return join(bound.args, bound.kwargs)
        return dict(zip(self._names, bound.args, strict=False)) | bound.kwargs or None

    def decode(self, value: Any) -> Arguments:
        """The arguments that `value` stands for."""
        if self._plain and type(value) is dict and self._required <= value.keys() <= self._parameters.keys():
            if not self.converters:
                return (), value
        args, kwargs = split(value)
        bound = self.bind(*args, **kwargs)
        self._convert(bound.arguments, "make")
        return bound.args, bound.kwargs

    @functools.cached_property
    def _converters(self) -> Mapping[str, Converter]:
        """Raises NameError for a name that is not there, or not yet."""
        try:
            signature = inspect.signature(self._function, eval_str=True)
        except SyntaxError as error:
            raise TypeError(f"an annotation is no expression: {error}") from None
        hints = {name: param.annotation for name, param in signature.parameters.items()}
        hints["return"] = of_result(signature.return_annotation)
        converters = {}
        for name, hint in hints.items():
            if not is_plain(hint) and get_origin(hint) is not Unpack:
                try:
                    converters[name] = Converter(hint)
                except TypeError as error:
                    raise TypeError(f"{name}: {error}") from None
        return converters

    def _convert(self, arguments: dict[str, Any], way: Literal["send", "make"]) -> None:
        for name, converter in self.converters.items():
            if name not in arguments:
                continue
            convert, value = getattr(converter, way), arguments[name]
            try:
                match self._parameters[name].kind:
                    case Parameter.VAR_POSITIONAL:
                        arguments[name] = tuple(map(convert, value))
                    case Parameter.VAR_KEYWORD:
                        arguments[name] = {key: convert(part) for key, part in value.items()}
                    case _:
                        arguments[name] = convert(value)
            except (TypeError, ValueError) as error:
                raise TypeError(f"{name}: {error}") from error


def join(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The value for arguments of a function whose parameters are not known."""
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


# -- values of the types that annotations name ------------------------------------------------------------------------


class Converter:
    """Of one type. Raises TypeError for one that cannot be made of what travels, NameError for one that names what is
    not defined, NotInstalled."""

    def __init__(self, hint: Any) -> None:
        with brought_by("worker", "a typed argument or result"):
            import msgspec
        self._hint = Sequence[get_args(hint)] if get_origin(hint) is Iterable else hint  # type: ignore[misc]
        try:
            msgspec.msgpack.Decoder(self._hint)
        except (TypeError, RecursionError) as error:
            raise TypeError(
                f"{hint} cannot be made of what travels: {error}; use types that MessagePack has, dataclasses or "
                "models of pydantic; or Any, and it arrives as it travels"
            ) from None

    def send(self, value: Any) -> Any:
        """In types that MessagePack has. Raises TypeError or ValueError for what is not of the type."""
        dumped = native(value)
        self.make(dumped)
        return dumped

    def make(self, value: Any) -> Any:
        """A value of the type from what travelled, or from one. Raises ValueError."""
        import msgspec

        try:
            # Numbers as keys are text where somebody writes JSON.
            return msgspec.convert(value, self._hint, builtin_types=_BYTES, str_keys=True, dec_hook=_made)
        except Exception as error:  # also what a class's own __post_init__ raises
            raise ValueError(str(error) or type(error).__name__) from error


def is_plain(hint: Any) -> bool:
    """Whether all values of a type travel as they are: nothing has to be done for them."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(type(part) in _SCALARS for part in args)
    if origin is not None:
        return origin in (*_CONTAINERS, *_UNIONS) and all(map(is_plain, args))
    return hint in _PLAIN


def of_result(hint: Any) -> Any:
    """What a result is, whose function says with it what follows, or is awaited."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return Union[tuple(map(of_result, args))]  # noqa: UP007
    if origin in (abc.Awaitable, abc.Coroutine, FollowUp, Move):
        return of_result(args[-1])
    return Any if hint in (FollowUp, Move) else hint


def native(value: Any, order: Literal["deterministic"] | None = None) -> Any:
    """In types that MessagePack has, and datetimes. `order`: that of sets and maps. Raises TypeError for what nobody
    knows, ValueError for what holds itself, NotInstalled."""
    with brought_by("worker", "a value of a type that MessagePack has not"):
        import msgspec
    try:
        return msgspec.to_builtins(
            value, builtin_types=(*_BYTES, datetime), enc_hook=_leaf, str_keys=False, order=order
        )
    except RecursionError:
        raise ValueError("it is nested too deeply, or holds itself") from None


def _made(kind: Any, value: Any) -> Any:
    """A value of a class of which msgspec knows nothing."""
    if isinstance(value, kind):
        return value
    if kind.__module__ in _AS_TEXT:
        return kind(value)
    if not hasattr(kind, "model_validate"):
        raise TypeError(f"nothing is known of {kind.__qualname__}")
    try:
        # What travels is no Python: strict models get text for a date all the same.
        return kind.model_validate(value, strict=False, by_alias=True, by_name=True)
    except ValueError as error:  # of pydantic, whose text shows what was given, which may be secret
        problems = error.errors(include_url=False, include_context=False, include_input=False)  # type: ignore[attr-defined]
        shown = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
        raise ValueError("; ".join(shown)) from None


def _leaf(value: Any) -> Any:
    """One step towards what MessagePack has, for what msgspec does not know."""
    if type(value).__module__ in _AS_TEXT:
        return str(value)
    if hasattr(value, "model_dump"):  # by names of fields, which all models have
        return value.model_dump(by_alias=False, round_trip=True, warnings=False)
    if hasattr(value, "get_secret_value"):
        return value.get_secret_value()
    raise TypeError(f"{type(value).__qualname__} cannot be packed")


# -- keys of the option `unique` --------------------------------------------------------------------------------------


def key_of(
    unique: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: Signature | None,
    serializer: Serializer,
) -> str | None:  # fmt: skip
    """The key that `unique` stands for, in a job of this name and these arguments; None for none. Of equal arguments it
    is the same one, in every process and however they are given. Raises what its function raises, and TypeError or
    ValueError for what cannot be packed, and where its function gives no text."""
    if callable(unique):
        key = unique(*args, **kwargs)
        if not isinstance(key, str):
            raise TypeError(f"unique of job {name}: expected its function to return text, got {key!r}")
        return key
    if unique is not True:
        return unique or None
    given: Any = join(args, kwargs)
    if signature is not None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
    # By the serializer, so that nobody can guess what one that encrypts has hidden.
    digest = serializer.dumps(blake2s(_canonical(given, serializer).encode()).hexdigest())
    return f"{name[:200]}:{blake2s(digest, digest_size=16).hexdigest()}"


def _canonical(value: Any, serializer: Serializer) -> str:
    """Text that is equal for equal values, whatever the order of their sets and maps."""

    def simpler(value: Any) -> Any:
        if isinstance(value, Set):
            return {"set": sorted(_canonical(part, serializer) for part in value)}
        if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        try:
            built = native(value, "deterministic")
        except (TypeError, NotInstalled):
            built = value
        return {"packed": repr(serializer.dumps(value))} if type(built) is type(value) else built

    return json.dumps(value, sort_keys=True, default=simpler)
