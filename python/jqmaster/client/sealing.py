"""A serializer whose values Redis, masters and the web UI cannot read."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgpack

from jqmaster.client.calling import MessagePack, Serializer
from jqmaster.errors import brought_by

EXT = 74  # MessagePack's extension type of a sealed value: [id of the key, what AES-SIV made of the value]


class Encrypted:
    """Arguments, checkpoints and results are sealed by AES-SIV (RFC 5297) with the first of `keys`, and opened with the
    one that their key's id names. Needs `pip install 'jqmaster[encryption]'`.

    `keys`: by ids of your own, keys as `new_key` makes them; all that sealed what is still there have to be among
    them. `inner` packs the values. `reads_plain`: so that encryption can begin while there are jobs, what is not sealed
    is read as well, which lets whoever can enqueue do so without a key.

    Equal values look equal: else `unique=True` and repeated requests would not know them again.
    """

    def __init__(
        self, keys: Mapping[str, str | bytes], *, inner: Serializer | None = None, reads_plain: bool = False
    ) -> None:
        with brought_by("encryption", "Encrypted"):
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        if not keys:
            raise ValueError("keys: expected one at least")
        self._ciphers = {key_id: AESSIV(_bytes_of(key)) for key_id, key in keys.items()}
        self._current = next(iter(keys))
        self._inner = inner or MessagePack()
        self._reads_plain = reads_plain
        self._wrong = InvalidTag

    @staticmethod
    def new_key() -> str:
        """64 random bytes in base64."""
        import secrets

        return base64.b64encode(secrets.token_bytes(64)).decode()

    def dumps(self, value: Any) -> bytes:
        sealed = self._ciphers[self._current].encrypt(self._inner.dumps(value), [self._current.encode()])
        packed: bytes = msgpack.packb(msgpack.ExtType(EXT, msgpack.packb([self._current, sealed])))
        return packed

    def loads(self, data: bytes) -> Any:
        payload = payload_of(data, EXT)
        if payload is None:
            if self._reads_plain:
                return self._inner.loads(data)
            raise ValueError("it is not encrypted")
        try:
            key_id, sealed = msgpack.unpackb(payload)
            opened = self._ciphers[key_id].decrypt(sealed, [key_id.encode()])
        except KeyError:
            raise ValueError(f"it is encrypted with the key {key_id!r}, which is not among those given") from None
        except (self._wrong, TypeError, ValueError, AttributeError, msgpack.UnpackException):
            raise ValueError("it cannot be decrypted: it was changed, or sealed with another key of this id") from None
        return self._inner.loads(opened)


def payload_of(data: bytes, code: int) -> bytes | None:
    """What a packed value holds if it is of this extension type."""
    if not data or data[0] not in _EXTENSIONS:
        return None
    try:
        value = msgpack.unpackb(data)
    except (ValueError, msgpack.UnpackException):
        return None
    return value.data if isinstance(value, msgpack.ExtType) and value.code == code else None


_EXTENSIONS = frozenset((0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8))


def _bytes_of(key: str | bytes) -> bytes:
    found = base64.b64decode(key, validate=True) if isinstance(key, str) else key
    if len(found) != 64:
        raise ValueError(f"a key: expected 64 bytes, or these in base64, got {len(found)}")
    return found
