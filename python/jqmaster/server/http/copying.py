"""Handlers that copy a namespace: out as one stream of records, and in, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import msgpack

from jqmaster.engine import packform
from jqmaster.engine.calling import contract_of
from jqmaster.engine.copying import chunks
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Page
from jqmaster.engine.scripts import check_namespace, install
from jqmaster.errors import JQError
from jqmaster.server.http import within
from jqmaster.server.http.own import own
from jqmaster.server.http_error import from_engine, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

RECORDS = "application/octet-stream"
STEP_RECORDS = 200
MOST_RECORDS = 500
MOST_BYTES = 1 << 20


@own(
    "export_all",
    """A copy of the namespace as one stream of records, one MessagePack value behind the other.
@reply records
@errors UNAVAILABLE
@role admin
@bound any
@http GET /export""",
)
async def export(master: Master, request: Request) -> Reply:
    """`GET /export`."""
    # The first step comes before the answer begins, so that what is wrong can still be said.
    await within.check(master.engine, request.who, contract_of("export"), [])
    first = await master.engine.export(count=STEP_RECORDS)
    return Reply(200, content_type=RECORDS, stream=_records(master, first))


async def _records(master: Master, page: Page) -> AsyncGenerator[bytes, None]:
    while True:
        if page.documents:
            yield b"".join(page.documents)
        if not page.cursor:
            return
        page = await master.engine.export(page.cursor, STEP_RECORDS)


@own(
    "import_records",
    """Write records of an export, all of it or some, in order, into another namespace.
@arg body records
@arg namespace text 3..66  where to; not set up yet (409)
@reply {keys: integer, complete: flag}
@errors INVALID namespace, INVALID records[i], VERSION, CONFLICT
@role admin
@bound any
@http POST /import""",
)
async def import_records(master: Master, request: Request) -> Reply:
    """`POST /import?namespace=`."""
    await within.check(master.engine, request.who, contract_of("import"), [])
    namespace = request.query.get("namespace")
    if not isinstance(namespace, str):
        raise invalid("namespace", "missing; expected a namespace that is not set up, such as {copy}")
    try:
        check_namespace(namespace)
    except ValueError as error:
        raise invalid("namespace", str(error)) from None
    served = master.engine
    engine = Engine(served.redis, namespace, scripts=served.scripts, form=served.form)
    keys = begun = 0
    records = list(_split(request.body))
    if not records:
        raise invalid(None, "the body is empty; expected records of GET /export")
    for batch in chunks(records, MOST_BYTES, MOST_RECORDS):
        try:
            keys += int(await engine.raw("import", *batch))
        except JQError as error:
            field = None if error.path is None else _shifted(error.path, begun)
            raise from_engine(error, field) from error
        begun += len(batch)
    is_complete = bool(await served.redis.exists(f"{namespace}:meta"))
    if is_complete:
        await install(served.redis, namespace, served.scripts, make_current=True, form=served.form)
    return Reply(200, packform.pack({"keys": keys, "complete": is_complete}))


def _shifted(path: str, begun: int) -> str:
    """The record at fault, counted from the body's first."""
    if not path.startswith("records["):
        return "namespace" if path == "namespace" else path
    number, _, rest = path.removeprefix("records[").partition("]")
    return f"records[{int(number) + begun}]{rest}"


def _split(body: bytes) -> Iterator[bytes]:
    """The body's records. Raises 400 for what is none."""
    unpacker = msgpack.Unpacker(None, max_buffer_size=max(1, len(body)))
    unpacker.feed(body)
    start = 0
    while start < len(body):
        try:
            unpacker.skip()
        except (ValueError, msgpack.UnpackException):
            raise invalid(None, f"the body holds no whole record behind byte {start}") from None
        end = unpacker.tell()
        yield body[start:end]
        start = end
