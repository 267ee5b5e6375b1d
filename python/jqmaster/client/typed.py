"""Values of the types that annotations name. They travel as what MessagePack has, and are made again on arrival: by
msgspec, or by pydantic where its types are meant, or those that only it can make."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import fractions
import ipaddress
import pathlib
import re
import zoneinfo
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from typing import Any, Optional, TypeVar, get_args, get_origin

import msgspec
import msgspec.inspect

from jqmaster.client import hints
from jqmaster.client.hints import Adapter, Types
from jqmaster.worker.ending import FollowUp, Move

_NATIVE = (bytes, bytearray, memoryview, dt.datetime)
_BYTES = _NATIVE[:3]
_AS_TEXT = (
    pathlib.PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    fractions.Fraction, zoneinfo.ZoneInfo,
)  # fmt: skip
"""Classes that read what `str` makes of their values, and of which msgspec knows nothing."""
_PYDANTIC_MAKES = (
    collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, re.Pattern,
    complex,
)  # fmt: skip
_NO_VALUES = (type, Callable, Iterator, Generator, AsyncIterator, AsyncGenerator)
_ADVICE = "use types that MessagePack has, dataclasses or models of pydantic; or Any, and it arrives as it travels"
_FOLLOWS = (FollowUp, Move)
_RESULT = "its result"


def types_of(annotations: hints.Annotations, *, strict: bool, last: bool = False) -> Types:
    """Raises TypeError for an annotation that cannot be honoured, naming its parameter; unless `strict` is false, as
    for serializers that know more. Raises NameError for one that names what is not known, or not yet; likewise when
    this is the `last` time to ask."""
    unknown: NameError | None = None

    def adapter(about: str, hint: Any, *, or_none: bool = False) -> Adapter | None:
        nonlocal unknown
        try:
            type_ = annotations.evaluated(hint)
            if or_none:
                type_ = Optional[type_]  # noqa: UP045
            return adapter_of(hints.of_result(type_, _FOLLOWS) if about == _RESULT else type_)
        except NameError as error:
            unknown = NameError(f"{about}: {error}")
        except (TypeError, SyntaxError) as error:
            if strict:
                raise TypeError(f"{about}: {error}") from None
        return None

    adapters = {
        name: adapter(f"parameter {name}", hint, or_none=name in annotations.none_by_default)
        for name, hint in annotations
    }
    result = adapter(_RESULT, annotations.result)
    if unknown is not None and (strict or not last):
        raise unknown
    return Types({name: known for name, known in adapters.items() if known is not None}, result)


def adapter_of(hint: Any) -> Adapter | None:
    """None for a type whose values travel as they are. Raises TypeError for one that cannot be made again, NameError
    for one that names what is not known."""
    if hints.is_plain(hint):
        return None
    if get_origin(hint) is Iterable:
        hint = Sequence[get_args(hint)]  # type: ignore[misc]
    try:
        if any(isinstance(variable, TypeVar) for variable in hints.variables_of(hint)):
            raise TypeError("a type variable stands for any type")
        parts = list(hints.parts_of(hint))
        for part in parts:
            _refuse(part)
        if any(map(_needs_pydantic, parts)):
            return _ByPydantic(hint)
        try:
            return _ByMsgspec(hint)
        except RecursionError:  # an alias that names itself
            return _ByPydantic(hint)
    except TypeError as error:
        reason = re.sub(r" \(.*?\)| - type .*", "", str(error))  # what msgspec says of unions is long
        raise TypeError(f"{hints.shown(hint)} cannot be made of what travels: {reason}; {_ADVICE}") from None


def native(value: Any) -> Any:
    """In types that MessagePack has, and datetimes. Raises TypeError for what nobody knows."""
    return msgspec.to_builtins(value, builtin_types=_NATIVE, enc_hook=_leaf, str_keys=False)


class _Converter:
    """By `dump` and `make`."""

    def send(self, value: Any) -> Any:
        dumped = self.dump(value)
        made = self.make(dumped)
        if made != value and (problem := _changed(value, made)):
            raise TypeError(problem)
        return dumped

    def dump(self, value: Any) -> Any:
        return native(value)

    def make(self, value: Any) -> Any:
        raise NotImplementedError


class _ByMsgspec(_Converter):
    def __init__(self, hint: Any) -> None:
        self._hint = hint
        for info in _described(msgspec.inspect.type_info(hint), set()):
            if isinstance(info, msgspec.inspect.CustomType) and not _is_hooked(info.cls):
                raise TypeError(f"nothing is known of {hints.shown(info.cls)}")
        msgspec.msgpack.Decoder(hint)

    def make(self, value: Any) -> Any:
        try:
            # Numbers as keys are text where somebody writes JSON.
            return msgspec.convert(value, self._hint, builtin_types=_BYTES, str_keys=True, dec_hook=_hook)
        except Exception as error:  # also what a class's own __post_init__ raises
            raise ValueError(_said(error)) from error


class _ByPydantic(_Converter):
    """By names of fields, which all models have, and some no alias that is for both ways. Aliases are understood."""

    def __init__(self, hint: Any) -> None:
        try:
            import pydantic
        except ImportError:
            raise TypeError("it takes pydantic, which is not installed") from None
        if tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 11):
            raise TypeError(f"it takes pydantic 2.11 at least, and this is {pydantic.VERSION}")
        try:
            self._adapter = pydantic.TypeAdapter(hint)
        except pydantic.PydanticUserError as error:
            raise TypeError(str(error).partition("\n")[0]) from None
        if not self._adapter.pydantic_complete:
            raise NameError(f"{hints.shown(hint)} names what is not defined")

    def dump(self, value: Any) -> Any:
        try:
            dumped = self._adapter.dump_python(value, by_alias=False, round_trip=True, warnings=False)
        except TypeError:  # of a set of models pydantic would make one of maps
            dumped = value
        return native(dumped)

    def make(self, value: Any) -> Any:
        try:
            # What travels is no Python: strict models get text for a date all the same.
            return self._adapter.validate_python(value, strict=False, by_alias=True, by_name=True)
        except Exception as error:
            raise ValueError(_said(error)) from error


def _refuse(part: Any) -> None:
    """Raise TypeError for what no value can be made of."""
    kind = get_origin(part) or part
    if kind in _NO_VALUES:
        raise TypeError(f"there is nothing that could travel for {hints.shown(part)}")
    if isinstance(part, enum.Enum) and not isinstance(part, str | int):
        raise TypeError(f"Literal of {part}; annotate {type(part).__qualname__}")
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        others = {type(member.value).__qualname__ for member in kind if not isinstance(member.value, hints.SCALARS)}
        if others or not len(kind):
            about = f"values of {', '.join(sorted(others))}" if others else "no values"
            raise TypeError(f"{kind.__qualname__} has {about}; expected text, numbers, bytes, booleans or None")
    if get_args(part) and isinstance(kind, type) and issubclass(kind, Mapping):
        key = hints.unaliased(get_args(part)[0])
        key_kind = get_origin(key) or key
        if isinstance(key_kind, type) and (issubclass(key_kind, tuple | frozenset) or hints.has_fields(key_kind)):
            raise TypeError(f"the keys of maps cannot be of {hints.shown(key)}")


def _needs_pydantic(part: Any) -> bool:
    kind = get_origin(part) or part
    if isinstance(kind, type) and issubclass(kind, enum.Enum):  # msgspec has those of text, and those of integers
        return issubclass(kind, enum.Flag) or {type(member.value) for member in kind} not in ({str}, {int})
    if hints.is_of_pydantic(kind) or kind in _PYDANTIC_MAKES or isinstance(kind, enum.Enum):
        return True
    if not isinstance(kind, type) or not issubclass(kind, Mapping) or not get_args(part):
        return False
    key = hints.unaliased(get_args(part)[0])  # for which msgspec does not call our hook
    return isinstance(key, type) and issubclass(key, _AS_TEXT)


def _described(info: Any, seen: set[int]) -> Iterator[Any]:
    """What msgspec has found a type to be made of."""
    if isinstance(info, tuple):
        for part in info:
            yield from _described(part, seen)
    elif isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field) and id(info) not in seen:
        seen.add(id(info))
        yield info
        for name in info.__struct_fields__:
            yield from _described(getattr(info, name), seen)


def _is_hooked(kind: type) -> bool:
    return kind is object or issubclass(kind, _AS_TEXT)


def _hook(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind(value)


def _leaf(value: Any) -> Any:
    """One step towards what MessagePack has, for what msgspec does not know."""
    if isinstance(value, _AS_TEXT):
        return str(value)
    if isinstance(value, collections.deque):
        return list(value)
    if hints.is_of_pydantic(type(value)) or isinstance(value, complex | re.Pattern):
        import pydantic
        import pydantic_core

        if isinstance(value, pydantic.BaseModel):
            return value.model_dump(by_alias=False, round_trip=True, warnings=False)
        if isinstance(value, pydantic.SecretStr | pydantic.SecretBytes | pydantic.Secret):
            return value.get_secret_value()
        return pydantic_core.to_jsonable_python(value)
    raise TypeError(f"{type(value).__qualname__} cannot be packed")


def _said(error: Exception) -> str:
    """What is wrong, in a line, without what was given: that may be secret."""
    errors = getattr(error, "errors", None)
    if isinstance(error, ValueError) and callable(errors):
        problems = errors(include_url=False, include_context=False, include_input=False)
        return "; ".join(
            ": ".join(filter(None, (".".join(map(str, problem["loc"])), problem["msg"]))) for problem in problems
        )
    is_plain = isinstance(error, msgspec.MsgspecError | ValueError | TypeError)
    return str(error) if is_plain else f"{type(error).__name__}: {error}"


def _changed(sent: Any, made: Any) -> str | None:
    """What is not as it was given, if that was of a class with fields, or an enum. None where it is, and for what was
    given as it travels."""
    kind = type(sent)
    pairs: Iterable[tuple[Any, Any]] = ()
    if hints.has_fields(kind) or isinstance(sent, enum.Enum) or (isinstance(made, str) and not isinstance(sent, str)):
        if not isinstance(made, kind):
            return f"{kind.__qualname__} would arrive as {type(made).__qualname__}"
        names = hints.names_of(kind) if hints.has_fields(kind) else ()
        pairs = ((getattr(sent, name, None), getattr(made, name, None)) for name in names)
    elif isinstance(sent, Mapping) and isinstance(made, Mapping):
        if lost := [str(name) for name in sent if len(made) < len(sent) and name not in made]:
            return f"there is no {', '.join(lost)}"
        pairs = ((part, made[key]) for key, part in sent.items() if key in made)
    elif isinstance(sent, Set) and isinstance(made, Set):
        whole = [part for part in sent if hints.has_fields(type(part))]
        pairs = ((part, next(iter(made))) for part in whole if not any(isinstance(other, type(part)) for other in made))
    elif isinstance(sent, list | tuple | collections.deque) and isinstance(made, list | tuple | collections.deque):
        pairs = zip(sent, made, strict=False)
    return next(filter(None, (_changed(*pair) for pair in pairs)), None)
