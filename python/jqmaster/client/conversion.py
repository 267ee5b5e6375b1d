"""Values of the types that annotations name. They travel as what MessagePack has, and are made again on arrival: by
msgspec, or by pydantic where a type is pydantic's, or one that msgspec does not know."""

from __future__ import annotations

import inspect
import types
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from datetime import datetime
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, Literal, LiteralString, Never, NoReturn, Protocol, TypeVar, Union, Unpack, get_args, get_origin

from jqmaster.errors import brought_by
from jqmaster.worker.ending import FollowUp, Move

SCALARS = (bool, int, float, str, bytes, type(None))
"""What MessagePack has and Python tells apart."""
_CONTAINERS = (list, dict, Sequence, MutableSequence, Collection, Iterable, Mapping, MutableMapping)
_PLAIN = {*SCALARS, *_CONTAINERS, object, inspect.Parameter.empty, Any, Never, NoReturn, LiteralString, None}
_UNIONS = (Union, types.UnionType)
_AS_TEXT = (PurePath, IPv4Address, IPv6Address, IPv4Network, IPv6Network, Fraction)
"""Classes that read what `str` makes of their values, and of which msgspec knows nothing."""
_NO_VALUES = (type, Callable, Iterator, Generator, AsyncIterator, AsyncGenerator)
_BYTES = (bytes, bytearray, memoryview)
_ADVICE = "use types that MessagePack has, dataclasses or models of pydantic; or Any, and it arrives as it travels"


class Converter(Protocol):
    """Of one type."""

    def send(self, value: Any) -> Any:
        """In types that MessagePack has. Raises TypeError or ValueError for what is not of the type."""

    def make(self, value: Any) -> Any:
        """A value of the type from what travelled, or from one. Raises ValueError."""


def converter_of(hint: Any) -> Converter | None:
    """None for a type whose values travel as they are. Raises TypeError for one that cannot be made of what travels,
    NameError for one that names what is not defined, NotInstalled."""
    if is_plain(hint) or get_origin(hint) is Unpack:
        return None
    if get_origin(hint) is Iterable:
        hint = Sequence[get_args(hint)]  # type: ignore[misc]
    with brought_by("worker", "a typed argument or result"):
        import msgspec.inspect
    try:
        _refuse(hint)
        unknown = next(_unknown(msgspec.inspect.type_info(hint), set()), None)
        if unknown is None:
            msgspec.msgpack.Decoder(hint)
            return _ByMsgspec(hint)
        _refuse(unknown)
        reason = f"nothing is known of {_shown(unknown)}"
    except (TypeError, RecursionError) as error:
        reason = str(error).partition(" - ")[0].partition(" (`")[0]
        if not reason.startswith("Enum") and "custom type" not in reason:  # of which pydantic may know more
            raise _refusal(hint, reason) from None
    return _ByPydantic(hint, reason)


def is_plain(hint: Any) -> bool:
    """Whether all values of a type travel as they are: nothing has to be done for them."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(type(part) in SCALARS for part in args)
    if origin is not None:
        return origin in (*_CONTAINERS, *_UNIONS) and all(map(is_plain, args))
    return hint in _PLAIN


def of_result(hint: Any) -> Any:
    """What a result is, whose function says with it what follows, or is awaited."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return Union[tuple(map(of_result, args))]  # noqa: UP007
    if origin in (Awaitable, Coroutine, FollowUp, Move):
        return of_result(args[-1])
    return Any if hint in (FollowUp, Move) else hint


def native(value: Any, order: Literal["deterministic"] | None = None) -> Any:
    """In types that MessagePack has, and datetimes. `order`: that of sets and maps. Raises TypeError for what nobody
    knows, NotInstalled."""
    with brought_by("worker", "a value of a type that MessagePack has not"):
        import msgspec
    return msgspec.to_builtins(value, builtin_types=(*_BYTES, datetime), enc_hook=_leaf, str_keys=False, order=order)


class _Converting:
    def send(self, value: Any) -> Any:
        dumped = self.dump(value)
        self.make(dumped)
        return dumped

    def dump(self, value: Any) -> Any:
        return native(value)

    def make(self, value: Any) -> Any:
        raise NotImplementedError


class _ByMsgspec(_Converting):
    def __init__(self, hint: Any) -> None:
        self._hint = hint

    def make(self, value: Any) -> Any:
        import msgspec

        try:
            # Numbers as keys are text where somebody writes JSON.
            return msgspec.convert(value, self._hint, builtin_types=_BYTES, str_keys=True, dec_hook=_made)
        except Exception as error:  # also what a class's own __post_init__ raises
            raise ValueError(str(error) or type(error).__name__) from error


class _ByPydantic(_Converting):
    """By names of fields, which all models have, and some no alias that is for both ways. Aliases are understood."""

    def __init__(self, hint: Any, reason: str) -> None:
        try:
            import pydantic

            self._adapter = pydantic.TypeAdapter(hint)
        except ImportError:
            raise _refusal(hint, f"{reason}, and pydantic is not installed") from None
        except pydantic.PydanticUserError:
            raise _refusal(hint, reason) from None
        if not self._adapter.pydantic_complete:
            raise NameError(f"{_shown(hint)} names what is not defined")

    def dump(self, value: Any) -> Any:
        return native(self._adapter.dump_python(value, by_alias=False, round_trip=True, warnings=False))

    def make(self, value: Any) -> Any:
        import pydantic

        try:
            # What travels is no Python: strict models get text for a date all the same.
            return self._adapter.validate_python(value, strict=False, by_alias=True, by_name=True)
        except pydantic.ValidationError as error:  # whose text shows what was given, which may be secret
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            shown = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
            raise ValueError("; ".join(shown)) from error


def _refuse(hint: Any) -> None:
    """Raise TypeError for what no value can be made of, though pydantic might take it."""
    kind = get_origin(hint) or hint
    if isinstance(kind, TypeVar):
        raise TypeError("a type variable stands for any type")
    if kind in _NO_VALUES:
        raise TypeError("it has no serializable form")
    for part in get_args(hint) if kind is not Literal else ():
        if not isinstance(part, list):
            _refuse(part)


def _unknown(info: Any, seen: set[int]) -> Iterator[type]:
    """The classes in what msgspec has found a type to be made of that it cannot make, or pydantic has to check."""
    from msgspec.inspect import CustomType, DataclassType, DictType, Field, Type

    if isinstance(info, tuple):
        for part in info:
            yield from _unknown(part, seen)
    elif isinstance(info, Type | Field) and id(info) not in seen:
        seen.add(id(info))
        match info:
            case CustomType(cls=kind) if kind is not object and not issubclass(kind, _AS_TEXT):
                yield kind
            case DataclassType(cls=kind) if hasattr(kind, "__pydantic_validator__"):
                yield kind
            case DictType(key_type=CustomType(cls=kind)):
                yield kind
        for name in info.__struct_fields__:
            yield from _unknown(getattr(info, name), seen)


def _made(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind(value)


def _leaf(value: Any) -> Any:
    """One step towards what MessagePack has, for what msgspec does not know."""
    if isinstance(value, _AS_TEXT) or type(value).__module__ == "pydantic.networks":
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=False, round_trip=True, warnings=False)
    if hasattr(value, "get_secret_value"):
        return value.get_secret_value()
    if isinstance(value, Sequence | MutableSequence):
        return list(value)
    raise TypeError(f"{type(value).__qualname__} cannot be packed")


def _refusal(hint: Any, reason: str) -> TypeError:
    return TypeError(f"{_shown(hint)} cannot be made of what travels: {reason}; {_ADVICE}")


def _shown(hint: Any) -> str:
    """As people write it."""
    return hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
