"""Keys of the option `unique`: of equal arguments the same one, in every process and however they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Set
from enum import Enum
from hashlib import blake2s
from typing import Any

from jqmaster.client import hints
from jqmaster.client.calling import Arguments, MessagePack, Serializer, Signature, join

UNPACKABLE = (TypeError, ValueError, OverflowError)
_USUAL = MessagePack()


def key_of(
    unique: Any, name: str, arguments: Arguments, signature: Signature | None, serializer: Serializer
) -> str | None:
    """The key that `unique` stands for, in a job of this name and these arguments; None for none. Raises what cannot
    be packed, and ValueError or TypeError, with the name of the job, for what its function raises or gives."""
    if unique is True:
        digest = blake2s(_canonical_of(arguments, signature, serializer).encode(errors="surrogatepass")).hexdigest()
        # By the serializer, so that nobody can guess what one that encrypts has hidden.
        return f"{name[:200]}:{blake2s(serializer.dumps(digest), digest_size=16).hexdigest()}"
    if not callable(unique):
        return None if unique is False else unique
    try:
        args, kwargs = _given_to(unique, *arguments, signature)
        key = unique(*args, **kwargs)
    except Exception as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"unique of job {name}: {type(error).__name__}: {error}") from error
    if not isinstance(key, str):
        raise TypeError(f"unique of job {name}: expected its function to return text, got {key!r}")
    return key


def check(unique: Any, name: str, signature: Signature | None) -> None:
    """Raise TypeError for a function that cannot be called with the arguments of the job."""
    if not callable(unique) or signature is None:
        return
    parameters = signature.parameters.values()
    try:
        taken = inspect.signature(unique)
    except ValueError:
        return
    if _takes_names(taken, signature) or any(
        param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD) for param in parameters
    ):
        return
    try:
        taken.bind(
            *(param.name for param in parameters if param.kind is not param.KEYWORD_ONLY),
            **{param.name: None for param in parameters if param.kind is param.KEYWORD_ONLY},
        )
    except TypeError:
        number, has = len(taken.parameters), ", ".join(signature.parameters)
        raise TypeError(
            f"unique of job {name}: takes {number} argument{'' if number == 1 else 's'}, the job has "
            f"{len(parameters)}: {has}; name those that it needs as the job does"
        ) from None


def canonical(value: Any, serializer: Serializer = _USUAL) -> str:
    """Text that is equal for equal values of equal types, whatever the order of their sets and maps. Raises TypeError,
    ValueError or OverflowError for what cannot be packed."""
    if type(value) in hints.SCALARS:
        return repr(value)
    if isinstance(value, Enum):
        return canonical(value.value, serializer)
    if isinstance(value, hints.SCALARS):  # of a class of its own, which nobody sees on arrival
        return canonical(_USUAL.loads(_USUAL.dumps(value)), serializer)
    if isinstance(value, Mapping):
        pairs = (f"{canonical(key, serializer)}:{canonical(part, serializer)}" for key, part in value.items())
        return f"{{{','.join(sorted(pairs))}}}"
    if isinstance(value, Set):
        return f"<{','.join(sorted(canonical(part, serializer) for part in value))}>"
    if isinstance(value, list | tuple):
        return f"[{','.join(canonical(part, serializer) for part in value)}]"
    if hints.has_fields(type(value)):
        return canonical(_fields_of(value), serializer)
    try:
        return f"packed {_USUAL.dumps(value)!r}"
    except UNPACKABLE:
        return f"packed {serializer.dumps(value)!r}"


def _canonical_of(arguments: Arguments, signature: Signature | None, serializer: Serializer) -> str:
    """With defaults, but for those that cannot be packed, which nobody can give."""
    if signature is None:
        return canonical(join(*arguments), serializer)
    bound = signature.bind(*arguments)
    named = frozenset(bound.arguments)
    bound.apply_defaults()
    parts = []
    for name, value in bound.arguments.items():
        try:
            parts.append(f"{name}:{canonical(value, serializer)}")
        except Exception:
            if name in named:
                adapter = signature.types.parameters.get(name)
                if adapter is None:
                    raise
                parts.append(f"{name}:{canonical(adapter.send(value), serializer)}")
    return ",".join(parts)


def _given_to(
    unique: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: Signature | None
) -> Arguments:
    """By name what it names; all, as the job gets it, where its names are others."""
    if signature is None:
        return args, dict(kwargs)
    bound = signature.bind(args, kwargs)
    bound.apply_defaults()
    try:
        taken = inspect.signature(unique)
    except ValueError:
        return bound.args, bound.kwargs
    if not _takes_names(taken, signature):
        return bound.args, bound.kwargs
    takes_all = any(param.kind is param.VAR_KEYWORD for param in taken.parameters.values())
    return (), {name: value for name, value in bound.arguments.items() if takes_all or name in taken.parameters}


def _takes_names(taken: inspect.Signature, signature: Signature) -> bool:
    """Whether it can be given the arguments that it names."""
    parameters = taken.parameters.values()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    required = {param.name for param in parameters if param.default is param.empty and param.kind in by_name[:2]}
    return all(param.kind in by_name for param in parameters) and required <= signature.parameters.keys()


def _fields_of(value: Any) -> Mapping[str, Any]:
    if hasattr(value, "model_dump"):
        dumped: dict[str, Any] = value.model_dump(by_alias=False, round_trip=True, warnings=False)
        return dumped
    return {name: getattr(value, name) for name in hints.names_of(type(value))}
