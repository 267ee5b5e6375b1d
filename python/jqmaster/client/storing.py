"""A serializer that puts large values elsewhere: into object storage, or files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

import msgpack

from jqmaster.client.calling import MessagePack, Serializer
from jqmaster.client.sealing import payload_of

EXT = 75  # MessagePack's extension type of a value that is elsewhere: the SHA-256 of what it is packed as
ABOVE = 64 * 1024


class Store(Protocol):
    """Where large values are. Names are 64 hexadecimal digits. Whatever these raise fails the attempt, or the call."""

    def put(self, name: str, data: bytes) -> None:
        """Keep `data`, for long from now if it was there before."""

    def get(self, name: str) -> bytes:
        """Raises LookupError where there is none of this name."""

    def delete(self, name: str) -> None:
        """Keep it no longer, if it is there."""


class Stored:
    """Values that take more than `above` bytes are put into `store`; a job has a reference to them. `inner` packs the
    values.

    A value's name is its digest: equal values are kept once, and a repeated call says the same. So nobody knows when
    the last job with a value has gone, and JQ deletes none: let them go by age (`Directory.sweep`).
    """

    blocks = True

    def __init__(self, store: Store, *, above: int = ABOVE, inner: Serializer | None = None) -> None:
        self._store = store
        self._above = above
        self._inner = inner or MessagePack()

    def dumps(self, value: Any) -> bytes:
        packed = self._inner.dumps(value)
        if len(packed) <= self._above:
            return packed
        digest = hashlib.sha256(packed).digest()
        self._store.put(digest.hex(), packed)
        reference: bytes = msgpack.packb(msgpack.ExtType(EXT, digest))
        return reference

    def loads(self, data: bytes) -> Any:
        digest = payload_of(data, EXT)
        if digest is None:
            return self._inner.loads(data)
        try:
            packed = self._store.get(digest.hex())
        except LookupError:
            raise ValueError(f"the value {digest.hex()} is not in the store (any more)") from None
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError(f"the value {digest.hex()} in the store is another one")
        return self._inner.loads(packed)


class Directory:
    """A `Store` in a directory that all programs and workers share. Its files are for one user alone."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def put(self, name: str, data: bytes) -> None:
        path = self._of(name)
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)  # it begins anew to be kept
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.replace(written, path)
        except BaseException:
            os.unlink(written)
            raise

    def get(self, name: str) -> bytes:
        try:
            return self._of(name).read_bytes()
        except FileNotFoundError:
            raise LookupError(name) from None

    def delete(self, name: str) -> None:
        self._of(name).unlink(missing_ok=True)

    def sweep(self, age: float) -> int:
        """Delete what nobody has put for `age` seconds, and what was never written to its end; how many."""
        before, count = time.time() - age, 0
        for path in self._path.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()
                    count += 1
        return count

    def _of(self, name: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", name):
            raise ValueError(f"{name!r}: expected 64 hexadecimal digits")
        return self._path / name[:2] / name
