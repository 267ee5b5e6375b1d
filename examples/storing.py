"""Large arguments and results elsewhere: a serializer that puts them into files. Needs a master, but no worker.

python storing.py [URL of the master]

A serializer is called in a worker's event loop: what waits for a network would hold it up. There let the argument be a
reference, and fetch it in the function.
"""

import hashlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgpack

from jqmaster import JQ, MessagePack

STORED = 75  # MessagePack's extension type of a value that is elsewhere: the SHA-256 of what it is packed as


class Stored:
    """In a folder that all programs and workers share. Equal values are one file, and nobody knows when the last job
    with it has gone: `sweep` what is older than jobs wait, are retried, and are kept after their end."""

    def __init__(self, folder: Path, above: int = 64 * 1024) -> None:
        self.folder, self.above, self.inner = folder, above, MessagePack()

    def dumps(self, value: Any) -> bytes:
        packed = self.inner.dumps(value)
        if len(packed) <= self.above:
            return packed
        digest = hashlib.sha256(packed).digest()
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(packed)
        Path(file.name).replace(self.folder / digest.hex())  # others see it whole
        reference: bytes = msgpack.packb(msgpack.ExtType(STORED, digest))
        return reference

    def loads(self, data: bytes) -> Any:
        value = self.inner.loads(data)
        if not isinstance(value, msgpack.ExtType) or value.code != STORED:
            return value
        try:
            packed = (self.folder / value.data.hex()).read_bytes()
        except FileNotFoundError:
            raise ValueError(f"the value {value.data.hex()} is not stored any more") from None
        if hashlib.sha256(packed).digest() != value.data:
            raise ValueError(f"the value {value.data.hex()} was changed")
        return self.inner.loads(packed)

    def sweep(self, age_s: float) -> None:
        for path in self.folder.iterdir():
            if path.stat().st_mtime < time.time() - age_s:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"
    with tempfile.TemporaryDirectory() as folder:
        store = Stored(Path(folder))
        jq = JQ(url, serializer=store)

        @jq.job
        def count(text: str) -> int:
            return len(text.split())

        handle = count.enqueue("word " * 100_000)
        kept = JQ(url).handle(handle.id).document()["argument"]
        print("in Redis:", kept.code, "in files:", len(list(Path(folder).iterdir())))
        jq.burst()
        print("words:", handle.result(timeout=10))
        store.sweep(age_s=30 * 86400)
