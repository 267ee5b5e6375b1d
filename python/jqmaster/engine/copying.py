"""A namespace as a file, and back (docs/operating.md).

The file: one line that says what it is, then the records of ``export``, each behind its length (4 bytes, big endian).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from jqmaster.bundle.build import Bundle, builtin
from jqmaster.connection.redis_client import RedisClient
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form, check_namespace, check_server, install

HEAD = b"JQ namespace 1\n"
_LENGTH_BYTES = 4
# Of an import's call: Redis reads all of it before it begins.
_MOST_RECORDS, _MOST_BYTES = 1000, 1 << 20


async def import_records(
    client: RedisClient,
    namespace: str,
    records: Iterable[bytes],
    scripts: Bundle | None = None,
    *,
    form: Form = "auto",
) -> int:
    """Write an export's records into ``namespace``, which must not be set up, and load the scripts there; how
    many records they were. Repeating an import that broke off completes it.

    Raises Invalid (no records, or not in order), Conflict, Version, Unavailable, UnsuitableServer and ValueError.
    """
    check_namespace(namespace)
    await check_server(client)
    scripts = builtin() if scripts is None else scripts
    engine = Engine(client, namespace, scripts=scripts, form=form)
    count = 0
    for chunk in chunks(records, _MOST_BYTES, _MOST_RECORDS):
        count += await engine.call("import", chunk)
    await install(client, namespace, scripts, make_current=True, form=form)
    return count


def chunks(records: Iterable[bytes], most_bytes: int, most: float = math.inf) -> Iterator[list[bytes]]:
    """Records as they go into one call."""
    chunk: list[bytes] = []
    size = 0
    for record in records:
        if chunk and (len(chunk) == most or size + len(record) > most_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += len(record)
    if chunk:
        yield chunk


def write_record(file: BinaryIO, record: bytes) -> None:
    """One record of a file that begins with HEAD."""
    file.write(len(record).to_bytes(_LENGTH_BYTES, "big") + record)


def read_file(file: BinaryIO) -> Iterator[bytes]:
    """The records of a file. Raises ValueError when it is none of ours, or was cut off."""
    if file.read(len(HEAD)) != HEAD:
        raise ValueError("not a file written by `jqmaster export`")
    while head := file.read(_LENGTH_BYTES):
        record = file.read(int.from_bytes(head, "big"))
        if len(head) < _LENGTH_BYTES or len(record) < int.from_bytes(head, "big"):
            raise ValueError("the file was cut off")
        yield record
