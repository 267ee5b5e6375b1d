"""`export` and `import`: a namespace as a file, and back."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from itertools import chain
from typing import Annotated, Any

from jqmaster.cli import show, values
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Refused, Replies


def export(file: Annotated[str, option("- for stdout")], /) -> Replies:
    """Export a namespace into a file.

    Stop servers and workers meanwhile: of what is written while it goes on, the copy may have one half.
    """
    from jqmaster.engine import copying

    if file == values.STDIN and sys.stdout.isatty():
        raise Refused("the file is not for a terminal: send stdout elsewhere", "INVALID")
    # The first record comes before the file is opened: what cannot be read must not empty an old copy.
    records, count = connect().each("export"), 0
    first = next(records, None)
    with values.opened(file, "wb") as out:
        out.write(copying.HEAD)
        for record in chain([] if first is None else [first], records):
            copying.write_record(out, record)
            count += 1
        out.flush()
    if file != values.STDIN:
        yield {"records": count}, f"{show.counted(count, 'record')} are in {file}"


def import_(file: Annotated[str, option("- for stdin")], /) -> Replies:
    """Import such a file into a namespace that is not set up.

    Repeating the command completes an import that broke off. It takes --redis: no server is asked.
    """
    from jqmaster.engine import copying

    client = connect(creates=True)
    if not client.target.is_redis:
        raise Refused("an import is made straight on Redis: give --redis", "INVALID")
    namespace = client.namespace

    def imported(engine: Any) -> Coroutine[Any, Any, int]:
        return copying.import_records(engine, copying.read_file(source))

    with values.opened(file, "rb") as source:
        records = client.ask(imported)
    yield {"records": records, "namespace": namespace}, f"{show.counted(records, 'record')} are in {namespace}"
