"""Annotations of functions: evaluated, looked through, and told apart from those whose values travel as they are."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from typing import (
    Any,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NoReturn,
    NotRequired,
    Protocol,
    Required,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

SCALARS = (bool, int, float, str, bytes, type(None))
"""What MessagePack has and Python tells apart."""
_CONTAINERS = (list, dict, Sequence, MutableSequence, Collection, Iterable, Mapping, MutableMapping)
_PLAIN = {*SCALARS, *_CONTAINERS, object, inspect.Parameter.empty}
_OF_PYDANTIC = ("pydantic", "annotated_types")
_UNIONS = (Union, types.UnionType)


class Adapter(Protocol):
    """What a type's values become on their way, and back."""

    def send(self, value: Any) -> Any:
        """In types that MessagePack has. Raises TypeError or ValueError when it would not arrive as what it is."""

    def make(self, value: Any) -> Any:
        """A value of the type from what travelled, or from one. Raises ValueError."""


class Types(NamedTuple):
    """Of a function: by name of a parameter its adapter, and that of its result. What has none travels as it is."""

    parameters: Mapping[str, Adapter] = {}
    result: Adapter | None = None


def is_plain(hint: Any, within: frozenset[int] = frozenset()) -> bool:
    """Whether all values of a type travel as they are: nothing has to be done for them. `within`: aliases that are
    being looked through, as they may name themselves."""
    if id(hint) in within:
        return True
    if (named := unaliased(hint)) is not hint:
        return is_plain(named, within | {id(hint)})
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(type(part) in SCALARS for part in args)
    if origin is not None:
        return origin in (*_CONTAINERS, *_UNIONS) and all(is_plain(part, within) for part in args)
    return hint in (Any, Never, NoReturn, LiteralString, None) or (isinstance(hint, type) and hint in _PLAIN)


def unaliased(hint: Any) -> Any:
    """What a `NewType`, or an alias made by `type`, stands for, one step; others as they are."""
    if type(hint).__name__ == "TypeAliasType" and not get_args(hint):
        return hint.__value__
    return getattr(hint, "__supertype__", hint)


class Annotations:
    """Of one function. What is text, as `from __future__ import annotations` leaves it, is evaluated by the names of
    its module, and of the place where this is made."""

    def __init__(self, function: Callable[..., Any], signature: inspect.Signature) -> None:
        inner = _innermost(function)
        self._names: dict[str, Any] = getattr(inner, "__globals__", {})
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals is not self._names:
            frame = frame.f_back
        self._local = {} if frame is None or frame.f_locals is self._names else dict(frame.f_locals)
        self._local |= {param.__name__: param for param in getattr(inner, "__type_params__", ())}
        self._signature = signature
        self.none_by_default = {param.name for param in signature.parameters.values() if param.default is None}

    @property
    def are_plain(self) -> bool:
        """Whether all are of types whose values travel as they are."""
        try:
            return all(is_plain(self.evaluated(hint)) for hint in (*(hint for _, hint in self), self.result))
        except (NameError, TypeError, SyntaxError):
            return False

    def forget(self) -> None:
        """The names of that place, which may hold much: all is evaluated."""
        self._local.clear()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Names of parameters, and of keywords that `**more: Unpack[…]` names, each with its annotation."""
        for param in self._signature.parameters.values():
            if param.kind is param.VAR_KEYWORD and "Unpack" in str(param.annotation):
                hint = self.evaluated(param.annotation)
                if get_origin(hint) is Unpack:
                    yield from get_type_hints(get_args(hint)[0], include_extras=True).items()
                    continue
            yield param.name, param.annotation

    @property
    def result(self) -> Any:
        return self._signature.return_annotation

    def evaluated(self, hint: Any) -> Any:
        """Raises NameError for what is not known, or not yet."""
        if not isinstance(hint, str) and is_plain(hint):
            return hint
        holder = types.SimpleNamespace(__annotations__={"it": hint})
        type_ = get_type_hints(holder, self._names, self._local, include_extras=True)["it"]
        while get_origin(type_) in (Required, NotRequired):
            [type_] = get_args(type_)
        return type_


def _innermost(function: Any) -> Any:
    """The function behind wrappers, partials, methods and objects that can be called."""
    while True:
        inner = inspect.unwrap(function)
        if isinstance(inner, functools.partial):
            inner = inner.func
        inner = getattr(inner, "__func__", inner)
        if not isinstance(inner, types.FunctionType) and isinstance(type(inner).__call__, types.FunctionType):
            inner = type(inner).__call__
        if inner is function:
            return inner
        function = inner


def of_result(hint: Any, follows: tuple[type, ...]) -> Any:
    """What a result is, whose function says with it what `follows`, or is awaited."""
    if get_origin(hint) in _UNIONS:
        parts = tuple(of_result(part, follows) for part in get_args(hint))
        return hint if parts == get_args(hint) else Union[parts]  # noqa: UP007
    if get_origin(hint) in (Awaitable, Coroutine):
        return of_result(get_args(hint)[-1], follows)
    if get_origin(hint) in follows:
        return of_result(get_args(hint)[0], follows)
    return Any if hint in follows else hint


def parts_of(hint: Any) -> Iterator[Any]:
    """All that an annotation is made of: types, their arguments, what `Annotated` and `Literal` hold; and likewise of
    the fields of its classes. Raises NameError."""
    seen: set[int] = set()
    waiting = [hint]
    while waiting:
        part = waiting.pop()
        named, kind = unaliased(part), get_origin(part) or part
        if named is not part:
            if id(part) not in seen:
                waiting.append(named)
            seen.add(id(part))
            continue
        yield part
        waiting += get_args(part)
        if isinstance(kind, type) and has_fields(kind) and not is_of_pydantic(kind) and id(kind) not in seen:
            seen.add(id(kind))
            waiting += get_type_hints(kind, include_extras=True).values()


def variables_of(hint: Any) -> Iterator[Any]:
    """The arguments of an annotation, down to the last, without its classes' fields."""
    yield hint
    for part in get_args(hint) if get_origin(hint) is not Literal else ():
        yield from variables_of(part)


def has_fields(kind: type) -> bool:
    """Whether it is a dataclass, NamedTuple, TypedDict, Struct of msgspec, class of attrs or model of pydantic."""
    marks = ("__attrs_attrs__", "__struct_fields__", "__pydantic_fields__")
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (
        dataclasses.is_dataclass(kind) or is_typeddict(kind) or is_named_tuple or any(hasattr(kind, m) for m in marks)
    )


def names_of(kind: Any) -> list[str]:
    """The names of the fields of a class that `has_fields`."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    for mark in ("__struct_fields__", "__pydantic_fields__", "_fields"):
        if (names := getattr(kind, mark, None)) is not None:
            return list(names)
    return [field.name for field in kind.__attrs_attrs__]


def is_of_pydantic(part: Any) -> bool:
    """Whether only pydantic knows what it means: its classes, and what it reads in `Annotated`."""
    kind = part if isinstance(part, type) else type(part)
    return hasattr(kind, "__get_pydantic_core_schema__") or kind.__module__.partition(".")[0] in _OF_PYDANTIC


def shown(hint: Any) -> str:
    """As people write it."""
    if isinstance(hint, type) and not get_args(hint):
        return hint.__qualname__
    return str(hint).replace("typing.", "")
