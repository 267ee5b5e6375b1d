"""`export` and `import`: a namespace as a file, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Misused, Options, Replies, asks
from jqmaster.cli.progress import Progress
from jqmaster.cli.status import Refused


@asks("""export
write all that a namespace has into a file
Stop masters and workers meanwhile: of what is written while it goes on, the
copy may have one half.

file FILE  or - for stdout
""")
def _export(client: Client, options: Options) -> Replies:
    from jqmaster.engine import copying

    if options.file == "-" and show.is_terminal():
        raise Refused("the file is not for a terminal: send stdout elsewhere", "INVALID")
    # The first records come before the file is opened: what cannot be read must not empty an old copy.
    records = client.export()
    first = next(records, None)
    with _opened(options.file, "wb") as file, Progress("exporting", unit="records") as bar:
        file.write(copying.HEAD)
        count = 0
        for record in chain([] if first is None else [first], records):
            copying.write_record(file, record)
            count += 1
            bar.add(1)
        file.flush()
    if options.file == "-":
        said = values.as_json({"records": count}) if options.json else f"{show.counted(count, 'record')} written"
        print(said, file=sys.stderr)
    else:
        yield {"records": count}, f"{show.counted(count, 'record')} are in {options.file}"


@contextmanager
def _opened(name: str, mode: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer if mode == "wb" else sys.stdin.buffer
        return
    with Path(name).open(mode) as file:
        yield file  # type: ignore[misc]


@asks(
    """import
read such a file into a namespace that is not set up
The namespace must not be set up; repeating the command completes an import
that broke off. By way of a master --namespace must be given, and is another
than the master's own.

file FILE  or - for stdin
""",
    creates=True,
    into=True,
)
def _import(client: Client, options: Options) -> Replies:
    from jqmaster.engine import copying

    if options.namespace is None and not client.target.is_redis:
        raise Misused(options.parser.prog, "by way of a master --namespace is required, or give --redis")
    namespace = options.namespace or client.namespace
    with _opened(options.file, "rb") as file:
        size = Path(options.file).stat().st_size if options.file != "-" else None
        with Progress("importing", size, "bytes") as bar:
            keys = client.import_records(_counted(copying.read_file(file), bar), namespace)
    yield {"keys": keys, "namespace": namespace}, f"{show.counted(keys, 'key')} are in {namespace}"


def _counted(records: Iterable[bytes], bar: Progress) -> Iterator[bytes]:
    for record in records:
        bar.add(len(record))
        yield record
