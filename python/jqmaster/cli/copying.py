"""`export` and `import`: a namespace as a file, and back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, reach
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK, EXIT_USAGE, Refused

_EXPORT = """\
Stop masters and workers meanwhile: of what is written while it goes on, the
copy may have one half."""
_IMPORT = """\
The namespace must not be set up; repeating the command completes an import
that broke off. By way of a master --namespace must be given, and is another
than the master's own."""


def add(commands: Any) -> None:
    parser = command(commands, "export", _export, "write all that a namespace has into a file", _EXPORT)
    reach(parser).add_argument("file", metavar="FILE", help="or - for stdout")
    parser = command(commands, "import", _import, "read such a file into a namespace that is not set up", _IMPORT)
    reach(parser).add_argument("file", metavar="FILE", help="or - for stdin")


def _export(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.engine import copying

    if options.file == "-" and show.is_terminal():
        raise Refused("the file is not for a terminal: send stdout elsewhere", EXIT_USAGE, "INVALID")
    with open_client(options) as client:
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
    said, where = (sys.stderr, "written") if options.file == "-" else (sys.stdout, f"are in {options.file}")
    if options.json:
        print(values.as_json({"records": count}), file=said)
    else:
        print(f"{show.counted(count, 'record')} {where}", file=said)
    return EXIT_OK


@contextmanager
def _opened(name: str, mode: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer if mode == "wb" else sys.stdin.buffer
        return
    with Path(name).open(mode) as file:
        yield file  # type: ignore[misc]


def _import(options: argparse.Namespace, parser: Parser) -> int:
    from jqmaster.engine import copying

    with _opened(options.file, "rb") as file, open_client(options, creates=True, into=True) as client:
        size = Path(options.file).stat().st_size if options.file != "-" else None
        with Progress("importing", size, "bytes") as bar:
            records = _counted(copying.read_file(file), bar)
            if options.namespace is None and not client.is_redis:
                parser.error("by way of a master --namespace is required, or give --redis")
            namespace = options.namespace or client.namespace
            keys = client.import_records(records, namespace)
    if options.json:
        values.print_json({"keys": keys, "namespace": namespace})
    else:
        print(f"{show.counted(keys, 'key')} are in {namespace}")
    return EXIT_OK


def _counted(records: Iterable[bytes], bar: Progress) -> Iterator[bytes]:
    for record in records:
        bar.add(len(record))
        yield record
