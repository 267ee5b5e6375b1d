"""Values of the types that annotations name. They travel as what MessagePack has, and are made again on arrival: by
msgspec, and models of pydantic by themselves."""

from __future__ import annotations

import inspect
import types
from collections.abc import (
    Awaitable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from datetime import datetime
from typing import Any, Literal, LiteralString, Never, NoReturn, Union, Unpack, get_args, get_origin

from jqmaster.errors import brought_by
from jqmaster.worker.ending import FollowUp, Move

SCALARS = (bool, int, float, str, bytes, type(None))
"""What MessagePack has and Python tells apart."""
_CONTAINERS = (list, dict, Sequence, MutableSequence, Collection, Iterable, Mapping, MutableMapping)
_PLAIN = {*SCALARS, *_CONTAINERS, object, inspect.Parameter.empty, Any, Never, NoReturn, LiteralString, None}
_UNIONS = (Union, types.UnionType)
_AS_TEXT = {"pathlib", "ipaddress", "fractions", "pydantic.networks"}
"""Modules whose classes read what `str` makes of their values, and of which msgspec knows nothing."""
_BYTES = (bytes, bytearray, memoryview)


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


def converter_of(hint: Any) -> Converter | None:
    """None for a type whose values travel as they are. Raises what `Converter` raises."""
    return None if is_plain(hint) or get_origin(hint) is Unpack else Converter(hint)


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
