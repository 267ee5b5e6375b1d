"""How operations of the model test stand on the wire: arguments of scripts, and replies as plain values."""

import msgpack

from jqmaster.manifest.manifest import operations
from model.common import ErrorReply, expect
from model.matcher import NOT_WHOLE, decode
from model.matcher import pack as pack_matcher

BLOBS = ("argument", "result", "error")
SPOILED = b"\xa8argument"  # what is not one whole value spoils the document of its own job


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def unpack_document(raw):
    """A document with its blobs left as bytes, to be compared byte for byte."""
    spoiled = next((blob for blob in NOT_WHOLE if SPOILED + blob in raw), None)
    if spoiled:
        raw = raw.replace(SPOILED + spoiled, SPOILED + b"\xc0")
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=0)
    unpacker.feed(raw)
    doc = {}
    for _ in range(unpacker.read_map_header()):
        key, begin = unpacker.unpack(), unpacker.tell()
        if key in BLOBS:
            unpacker.skip()
            doc[key] = raw[begin : unpacker.tell()]
        else:
            doc[key] = unpacker.unpack()
    expect(unpacker.tell() == len(raw), "bytes behind a document", raw)
    if spoiled:
        doc["argument"] = spoiled
    expect(type(doc.get("keep_result", False)) is bool, "keep_result is no boolean", doc)
    return doc


def plain_document(raw):
    return msgpack.unpackb(raw, strict_map_key=False)


def document(raw):
    """One that may hold values of jobs, which stay as `model.matcher` has them; the engine's own maps are dicts."""
    return named(decode(raw))


def named(pairs):
    return {key: NESTED[key](value) if key in NESTED else value for key, value in pairs}


NESTED = {"rate": dict, "constraints": lambda documents: [named(pairs) for pairs in documents]}


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return [text(v) for v in value] if isinstance(value, list) else value


def grouped(parts, size):
    """A flat list as one of lists."""
    expect(len(parts) % size == 0, "parts that are left over", parts)
    return [parts[at : at + size] for at in range(0, len(parts), size)]


def enqueued(reply):
    return grouped(text(reply), 2)


def finished(reply, count):
    """The answers of so many outcomes, and where there was a pick its reply."""
    answers = [
        [answer[0], *grouped(answer[1:], 2)] if isinstance(answer, list) else answer for answer in text(reply[:count])
    ]
    return [answers, picked(reply[count:])] if len(reply) > count else [answers]


def picked(reply):
    return [reply[0], *([unpack_document(doc), argument] for doc, argument in grouped(reply[1:], 2))]


def documents(reply):
    return [None if doc is None else unpack_document(doc) for doc in reply]


def page(reply, read=plain_document):
    return [reply[0].decode(), *map(read, reply[1:])]


def spec_only(**fields):
    return [pack(fields)]


def pairs(items):
    return [part for spec, blob in items for part in (pack(spec), blob)]


def outcome_parts(outcomes):
    """Outcomes with their blobs; behind those that enqueue, the jobs."""
    for outcome, blob, *follows in outcomes:
        jobs = follows[0] if follows else []
        yield pack(outcome | ({"enqueue": len(jobs)} if follows else {}))
        yield blob
        yield from pairs(jobs)


def first_text(reply, rest=text):
    return [reply[0].decode(), *map(rest, reply[1:])]


# Where nothing stands here: one spec, or the id; the documents of its head, or the reply as it comes, or of a listing
# its pages' plain documents.
ONE_ID = [script for script, one in operations().items() if one.positions == ("id",)]
SHAPES = {
    "document": plain_document, "list": lambda reply: [plain_document(doc) for doc in reply],
    "state": text, "states": text,
}  # fmt: skip
ENCODE = {
    **dict.fromkeys(ONE_ID, lambda id: [id]),
    "enqueue": lambda options, jobs: ([] if options is None else [pack(options)]) + pairs(jobs),
    "finish": lambda outcomes, **spec: [pack(spec), *outcome_parts(outcomes)],
    "heartbeat": lambda blobs=(), **spec: [pack(spec), *blobs],
    "change": lambda jobs: pairs(jobs),
    "schedule": lambda argument=None, **spec: [pack(spec), *([] if argument is None else [argument])],
    "constrain": lambda match, **spec: [pack(spec), pack_matcher(match)],
    "subscribe": lambda match, **spec: [pack(spec), match],
    "get": lambda ids: ids,
    "watch": lambda ids: ids,
    "setup": list,
}
REPLIES = {script: one.replies[0].of for script, one in operations().items()}
KINDS = {script: of.name if of.name in SHAPES else of.kind for script, of in REPLIES.items()}
DECODE = {
    **{script: SHAPES[kind] for script, kind in KINDS.items() if kind in SHAPES},
    **{script: first_text for script, of in REPLIES.items() if of.kind == "page" and of.of.kind == "members"},
    "enqueue": enqueued, "heartbeat": text, "watch": text,
    "register": text, "audit": text, "pick": picked,
    "get": documents, "constrain": document, "explain": document,
    "constraints": lambda reply: page(reply, document), "usage": lambda reply: page(reply, document),
    "schedule": lambda reply: text(reply) if isinstance(reply, list) else unpack_document(reply),
    "schedules": lambda reply: page(reply, unpack_document),
    "jobs": lambda reply: page(reply, unpack_document),
    "failures": lambda reply: page(reply, document),
    "grant": plain_document,
    "subscribe": document, "webhooks": lambda reply: [document(doc) for doc in reply],
    "result": lambda reply: [reply[0].decode(), *reply[1:]],
    "assign": lambda reply: [reply[0], *([*(text(one) for one in told), unpack_document(doc), argument]
                                         for *told, doc, argument in grouped(reply[1:], 6))],
}  # fmt: skip


def plain_matcher(value):
    """A decoded matcher as it was written, see model.matcher.pack."""
    if isinstance(value, msgpack.ExtType):
        return tuple(value)
    if isinstance(value, list) and type(value) is not list:
        return {key: plain_matcher(inner) for key, inner in value}
    return [plain_matcher(inner) for inner in value] if isinstance(value, list) else value


def parse_error(message):
    """`CODE path: message`; the path is absent when no argument is at fault."""
    head, colon, rest = message.partition(": ")
    code, blank, path = head.partition(" ")
    if colon and blank and " " not in path:
        return ErrorReply(code, path, rest)
    return ErrorReply(code, None, message[len(code) + 1 :])
