"""`export` and `import`: a namespace as a file, and back (docs/operating.md).

The file: one line that says what it is, then the records of ``export``, each behind its length (4 bytes, big endian).
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from jqmaster.cli import show, values
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Refused, Replies

if TYPE_CHECKING:
    from jqmaster.engine.engine import Engine

HEAD = b"JQ namespace 1\n"
_LENGTH_BYTES = 4
# Of an import's call: Redis reads all of it before it begins.
_MOST_RECORDS, _MOST_BYTES = 1000, 1 << 20


def export(file: Annotated[str, option("- for stdout")], /) -> Replies:
    """Export a namespace into a file.

    Stop servers and workers meanwhile: of what is written while it goes on, the copy may have one half.
    """
    if file == values.STDIN and sys.stdout.isatty():
        raise Refused("the file is not for a terminal: send stdout elsewhere", "INVALID")
    # The first record comes before the file is opened: what cannot be read must not empty an old copy.
    records, count = connect().each("export"), 0
    first = next(records, None)
    with values.opened(file, "wb") as out:
        out.write(HEAD)
        for record in chain([] if first is None else [first], records):
            write_record(out, record)
            count += 1
        out.flush()
    if file != values.STDIN:
        yield {"records": count}, f"{show.counted(count, 'record')} are in {file}"


def import_(file: Annotated[str, option("- for stdin")], /) -> Replies:
    """Import such a file into a namespace that is not set up.

    Repeating the command completes an import that broke off. It takes --redis: no server is asked.
    """
    client = connect(creates=True)
    if not client.target.is_redis:
        raise Refused("an import is made straight on Redis: give --redis", "INVALID")
    namespace = client.namespace

    def imported(engine: Any) -> Coroutine[Any, Any, int]:
        return import_records(engine, read_file(source))

    with values.opened(file, "rb") as source:
        records = client.ask(imported)
    yield {"records": records, "namespace": namespace}, f"{show.counted(records, 'record')} are in {namespace}"


async def import_records(engine: Engine, records: Iterable[bytes]) -> int:
    """Write an export's records into a namespace, which must not be set up, and load the scripts there; how many
    records they were. Repeating an import that broke off completes it.

    Raises Invalid (no records, or not in order), Conflict, Version, Unavailable, UnsuitableServer and ValueError.
    """
    from jqmaster.engine.scripts import check_server, load

    await check_server(engine.redis)
    count = 0
    for chunk in _chunks(records):
        count += await engine.call("import", chunk)
    await load(engine.redis, engine.namespace, engine.scripts)
    return count


def _chunks(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Records as they go into one call."""
    chunk: list[bytes] = []
    size = 0
    for record in records:
        if len(chunk) == _MOST_RECORDS or (chunk and size + len(record) > _MOST_BYTES):
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
