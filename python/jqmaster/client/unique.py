"""Keys of the option `unique`: of equal arguments the same one, in every process and however they are given."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Set
from hashlib import blake2s
from typing import Any

from jqmaster.client import conversion
from jqmaster.client.calling import Arguments, MessagePack, Serializer, Signature, join
from jqmaster.errors import NotInstalled

_USUAL = MessagePack()


def key_of(
    unique: Any, name: str, arguments: Arguments, signature: Signature | None, serializer: Serializer
) -> str | None:
    """The key that `unique` stands for, in a job of this name and these arguments; None for none. Raises what cannot
    be packed, and ValueError or TypeError, with the name of the job, for what its function raises or gives."""
    if unique is not True and not callable(unique):
        return None if unique is False else unique
    given: Any = join(*arguments)
    if signature is not None:
        bound = signature.bind(*arguments)
        bound.apply_defaults()
        given = bound.arguments
    if unique is True:
        digest = blake2s(_canonical(given, serializer).encode(errors="surrogatepass")).hexdigest()
        # By the serializer, so that nobody can guess what one that encrypts has hidden.
        return f"{name[:200]}:{blake2s(serializer.dumps(digest), digest_size=16).hexdigest()}"
    try:
        if signature is None:
            key = unique(*arguments[0], **arguments[1])
        else:
            names = inspect.signature(unique).parameters
            key = unique(**{name: value for name, value in given.items() if name in names})
    except Exception as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"unique of job {name}: {type(error).__name__}: {error}") from error
    if not isinstance(key, str):
        raise TypeError(f"unique of job {name}: expected its function to return text, got {key!r}")
    return key


def _canonical(value: Any, serializer: Serializer) -> str:
    """Text that is equal for equal values of equal types, whatever the order of their sets and maps. Raises TypeError,
    ValueError or OverflowError for what cannot be packed."""
    if type(value) in conversion.SCALARS:
        return repr(value)
    if isinstance(value, Mapping):
        pairs = (f"{_canonical(key, serializer)}:{_canonical(part, serializer)}" for key, part in value.items())
        return f"{{{','.join(sorted(pairs))}}}"
    if isinstance(value, Set):
        return f"<{','.join(sorted(_canonical(part, serializer) for part in value))}>"
    if isinstance(value, list | tuple):
        return f"[{','.join(_canonical(part, serializer) for part in value)}]"
    if dataclasses.is_dataclass(value):
        return _canonical({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, serializer)
    try:
        built = conversion.native(value, "deterministic")
    except (TypeError, NotInstalled):
        if getattr(serializer, "is_usual", False):
            raise
        return repr(serializer.dumps(value))
    return _canonical(built, serializer) if type(built) is not type(value) else repr(_USUAL.dumps(value))
