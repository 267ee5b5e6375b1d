"""Values of the types that annotations name: dataclasses, UUID, Decimal, date, enum, and models of pydantic. They
travel as what MessagePack has, and are made again where the annotation says so."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import msgspec

from jqmaster.worker.ending import FollowUp, Move

Convert = Callable[[Any], Any]

_NATIVE = (bytes, bytearray, memoryview, dt.datetime)
_MADE = (uuid.UUID, decimal.Decimal, enum.Enum, dt.date, dt.time, dt.timedelta, msgspec.Struct)


def native(value: Any) -> Any:
    """What MessagePack has in place of a value that it has not. Raises TypeError for what nobody knows."""
    return msgspec.to_builtins(value, builtin_types=_NATIVE, enc_hook=_from_model, str_keys=False)


def converters(function: Callable[..., Any]) -> dict[str, Convert]:
    """By parameter's name, and `return`, what makes a value of the type that is annotated. Those whose types travel as
    they are are left out, and those whose annotations cannot be read here."""
    found = {name: converter(_evaluated(hint, function)) for name, hint in _annotations(function).items()}
    return {name: convert for name, convert in found.items() if convert is not None}


def converter(hint: Any) -> Convert | None:
    """None for a type that travels as it is, and for unions of which nobody could tell what is meant. What the
    converter gets may be of the type already. It raises ValueError for what is no such value."""
    if get_origin(hint) in (FollowUp, Move):
        [hint] = get_args(hint)  # of these nobody but the worker hears
    if hint in (FollowUp, Move) or not _is_made(hint):
        return None
    try:
        msgspec.msgpack.Decoder(hint, dec_hook=_to_model)
    except (TypeError, NameError):
        return None  # such as UUID | str: who could tell which is meant

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, hint, builtin_types=_NATIVE, dec_hook=_to_model)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error

    return convert


def _is_made(hint: Any) -> bool:
    if isinstance(hint, type) and not get_args(hint):
        is_class = dataclasses.is_dataclass(hint) or _is_model(hint)
        return is_class or (issubclass(hint, _MADE) and not issubclass(hint, dt.datetime))
    return any(_is_made(part) for part in get_args(hint) if not isinstance(part, str))


def _is_model(hint: Any) -> bool:
    # Not imported for those who do not.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def _from_model(value: Any) -> Any:
    if _is_model(type(value)):
        return value.model_dump()
    raise TypeError(f"{type(value).__qualname__} cannot be packed")


def _to_model(hint: type, value: Any) -> Any:
    if _is_model(hint):
        return hint.model_validate(value)  # type: ignore[attr-defined]
    if isinstance(value, hint):
        return value
    raise ValueError(f"expected {hint.__qualname__}, got {type(value).__qualname__}")


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.get_annotations(inspect.unwrap(function))
    except (TypeError, NameError):
        return {}


def _evaluated(hint: Any, function: Callable[..., Any]) -> Any:
    """An annotation that is text, as `from __future__ import annotations` leaves it. Names that only type checkers
    know stay text."""
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, getattr(inspect.unwrap(function), "__globals__", {}))
    except Exception:
        return hint
