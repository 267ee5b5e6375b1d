"""Arguments and results that nobody reads but who has the keys: a serializer that encrypts. Needs a master, but no
worker, and `pip install cryptography`.

python sealing.py [URL of the master]

AES-SIV (RFC 5297): equal values look equal under one key, so that `unique=True` and repeated requests know them again.
Names and options of jobs, progress, messages and tracebacks of failures stay readable, and limits see nothing inside.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

import msgpack
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from jqmaster import JQ, MessagePack

SEALED = 74  # MessagePack's extension type of a sealed value: [id of the key, what was made of the value]


class Sealed:
    """`keys` of 64 bytes by ids of your own: the first seals, all open. To replace one, give the new one everywhere as
    the second, then as the first; leave the old one out when no job and no schedule has it any more."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self.ciphers = {key_id: AESSIV(key) for key_id, key in keys.items()}
        self.current = next(iter(keys))
        self.inner = MessagePack()

    def dumps(self, value: Any) -> bytes:
        box = self.ciphers[self.current].encrypt(self.inner.dumps(value), [self.current.encode()])
        packed: bytes = msgpack.packb(msgpack.ExtType(SEALED, msgpack.packb([self.current, box])))
        return packed

    def loads(self, data: bytes) -> Any:
        sealed = msgpack.unpackb(data, strict_map_key=False)
        if not isinstance(sealed, msgpack.ExtType) or sealed.code != SEALED:
            raise ValueError("it is not encrypted")
        key_id, box = msgpack.unpackb(sealed.data)
        try:
            return self.inner.loads(self.ciphers[key_id].decrypt(box, [key_id.encode()]))
        except KeyError:
            raise ValueError(f"it is encrypted with the key {key_id!r}, which is not here") from None
        except InvalidTag:
            raise ValueError("it was changed, or sealed with another key of this id") from None


if __name__ == "__main__":
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"
    old, new = os.urandom(64), os.urandom(64)  # in earnest from a vault
    before = JQ(url, serializer=Sealed({"2025": old}))
    handle = before.enqueue("pay", {"card": "4242 4242"}, keep_result=True)

    jq = JQ(url, serializer=Sealed({"2026": new, "2025": old}))

    @jq.job
    def pay(card: str) -> str:
        return f"paid with {card}"

    jq.burst()
    print("with the keys:", jq.handle(handle.id).result(timeout=10))
    print("without:", type(JQ(url).handle(handle.id).document()["argument"]).__name__)
