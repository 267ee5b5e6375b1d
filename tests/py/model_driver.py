"""Runs one operation against the engine and against the model, and compares.

An operation is a list `[script, arguments, label]` of plain values, so that a failing sequence can be printed
and replayed. Jobs and workers are named by label (`job:12.0` is the first job of the operation labelled 12),
since ids are the engine's to give; a label that no operation has made stands for an id nobody knows.
"""

import os
from pathlib import Path

import msgpack
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ResponseError

from jqmaster import luabuild
from model import ErrorReply, Mismatch, Model, Refused, expect
from model_matcher import NOT_WHOLE, decode
from model_matcher import pack as pack_matcher

NAMESPACE = "{model}"
# Another tree of scripts/ and jqlua/ than this one.
SOURCE = Path(os.environ["JQ_SOURCE"]) if "JQ_SOURCE" in os.environ else None
START_MS = 1_700_000_000_000
BLOBS = ("argument", "result", "error")
SPOILED = b"\xa8argument"  # what is not one whole value spoils the document of its own job
UNKNOWN = {"job": "00000000000001", "worker": "w00000000000001"}


class Connection:
    """Redis over a unix socket, one command at a time, replies as they come."""

    def __init__(self, socket):
        self.connection = UnixDomainSocketConnection(path=str(socket), socket_timeout=30, protocol=2)
        self.connection.connect()

    def send(self, *command):
        self.connection.send_command(*command)
        return self.connection.read_response()

    def read(self):
        return self.connection.read_response()

    def close(self):
        self.connection.disconnect()


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
    return msgpack.unpackb(raw)


def constraint_document(raw):
    """The matcher is left as bytes."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(raw)
    doc = {}
    for _ in range(unpacker.read_map_header()):
        key, begin = unpacker.unpack(), unpacker.tell()
        unpacker.skip()
        doc[key] = raw[begin : unpacker.tell()]
    match = doc.pop("match")
    return with_rate((key, decode(value)) for key, value in doc.items()) | {"match": match}


def with_rate(pairs):
    """A document that may hold a rate. Other maps are values of jobs, and stay pairs."""
    return {key: dict(value) if key == "rate" else value for key, value in pairs}


def use_document(raw):
    return dict(decode(raw))


def explained(raw):
    doc = dict(decode(raw))
    if "constraints" in doc:
        doc["constraints"] = [with_rate(pairs) for pairs in doc["constraints"]]
    return doc


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return [text(v) for v in value] if isinstance(value, list) else value


def picked(reply):
    return [reply[0], *([unpack_document(doc), argument] for doc, argument in reply[1:])]


def documents(reply):
    return [None if doc is None else unpack_document(doc) for doc in reply]


def page(reply, document=plain_document):
    return [reply[0].decode(), *map(document, reply[1:])]


def spec_only(**fields):
    return [pack(fields)]


def pairs(items):
    return [part for spec, blob in items for part in (pack(spec), blob)]


ENCODE = {
    "enqueue": lambda options, jobs: ([] if options is None else [pack(options)]) + pairs(jobs),
    "finish": lambda outcomes, **spec: [pack(spec), *pairs(outcomes)],
    "constrain": lambda match, **spec: [pack(spec), pack_matcher(match)],
    "explain": lambda id: [id],
    "result": lambda id: [id],
    "get": lambda ids: ids,
    "watch": lambda ids: ids,
    "setup": list,
}
DECODE = {
    "enqueue": text, "heartbeat": text, "release": text, "refuse": text, "cancel": text, "watch": text,
    "register": text, "audit": text, "pick": picked, "get": documents, "queue": plain_document,
    "config": plain_document, "queues": page, "workers": page, "constrain": constraint_document,
    "explain": explained, "constraints": lambda reply: page(reply, constraint_document),
    "usage": lambda reply: page(reply, use_document),
    "result": lambda reply: [reply[0].decode(), *reply[1:]],
    "assign": lambda reply: [reply[0], *([id.decode(), url.decode(), unpack_document(doc), argument]
                                         for id, url, doc, argument in reply[1:])],
}  # fmt: skip


class Driver:
    def __init__(self, socket):
        self.redis = Connection(socket)
        self.listener = Connection(socket)
        self.scripts = luabuild.build(SOURCE, clock="settable")
        for script in self.scripts.values():
            self.redis.send("SCRIPT", "LOAD", script.source)
        self.listener.send("SSUBSCRIBE", NAMESPACE + ":ended")
        self.fresh()

    def fresh(self):
        self.redis.send("FLUSHALL")
        self.hear()
        self.model = Model(self.look, self.look_at_worker, lambda id: self.pages("usage", id=id))
        self.move_clock(START_MS)
        self.call("setup")
        self.names = {}  # label -> id

    def close(self):
        self.redis.close()
        self.listener.close()

    def set_clock(self, now_ms):
        self.redis.send("SET", NAMESPACE + ":clock", now_ms)

    def move_clock(self, delta_ms):
        self.set_clock(self.model.now + delta_ms)
        self.model.advance(delta_ms)
        self.model.after_operation()

    def evalsha(self, script, *args):
        """The raw reply; raises redis.exceptions.ResponseError."""
        return self.redis.send("EVALSHA", self.scripts[script].sha, 2, NAMESPACE, NAMESPACE + ":meta", *args)

    def call(self, script, **fields):
        args = ENCODE.get(script, spec_only)(**fields)
        try:
            reply = self.evalsha(script, *args)
        except ResponseError as error:
            return parse_error(str(error))
        if script == "finish":
            return [text(reply[0]), *map(picked, reply[1:])]
        return DECODE.get(script, lambda r: r)(reply)

    def look(self, id):
        return self.call("get", ids=[id])[0]

    def look_at_worker(self, id):
        return next((doc for doc in self.pages("workers") if doc["id"] == id), None)

    def pages(self, script, **fields):
        """All documents of a paged listing."""
        cursor, found = "", []
        while True:
            reply = self.call(script, cursor=cursor, **fields)
            if isinstance(reply, ErrorReply):
                return reply
            cursor, *docs = reply
            expect(len(docs) <= fields.get("count", 100), "more than a page", docs)
            found += docs
            if not cursor:
                return found

    # ---- operations ----

    def run(self, operation):
        """Runs an operation on both; raises Mismatch. Gives the engine's reply, where there is one."""
        script, fields, label = operation
        reply = None
        if script == "clock":
            self.move_clock(fields["delta_ms"])
        elif script == "wake":
            self.wake(**fields)
        elif script == "settle":
            self.settle()
        elif script == "check":
            self.check()
        elif script in ("queues", "workers", "constraints") and not {"names", "ids"} & set(fields):
            getattr(self.model, "list_" + script)(self.pages(script, **fields))
        else:
            reply = self.compare(script, self.resolve(fields), label)
        self.model.after_operation()
        if script != "clock":
            self.model.check_sleepers(self.is_marked)
        return reply

    def compare(self, script, fields, label):
        if script == "usage":
            reply = self.pages(script, **fields)
        else:
            reply = self.call(script, **fields)
        if script in ("queues", "constraints"):
            script, reply = "list_" + script, reply[1:]
        try:
            getattr(self.model, script)(reply, **fields)
        except Refused as refused:
            agreed = isinstance(reply, ErrorReply) and reply[:2] == refused.args
            expect(agreed, "expected a refusal", refused.args, reply)
            return reply
        if script == "enqueue":
            self.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(reply)}
        elif script == "register":
            self.names[f"worker:{label}"] = reply
        return reply

    def is_marked(self, channel):
        return self.redis.send("EXISTS", f"{NAMESPACE}:wake:{channel}") == 1

    def wake(self, on, **then):
        """Takes the channel's marker, if it is set, as a sleeper does, who then picks."""
        if self.redis.send("ZPOPMIN", f"{NAMESPACE}:wake:{on}"):
            ((script, fields),) = then.items()
            reply = self.compare(script, self.resolve(fields), None)
            if isinstance(reply, ErrorReply):  # he will come again, under another name
                self.redis.send("ZADD", f"{NAMESPACE}:wake:{on}", 0, "1")

    def resolve(self, value):
        """Labels replaced by ids."""
        if isinstance(value, dict):
            return {k: self.resolve(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolve(v) for v in value]
        if isinstance(value, str) and value.startswith(("job:", "worker:")):
            return self.names.get(value, UNKNOWN[value.split(":")[0]])
        return value

    # ---- what must hold at any time ----

    def hear(self):
        """What was published since the last time."""
        self.listener.connection.send_command("PING")
        heard = []
        while (message := self.listener.read())[0] != b"pong":
            if message[0] == b"smessage":
                heard.append(tuple(message[2].decode().split(" ")))
        return heard

    def check(self):
        """Every document, every count, everything published, and the engine's own audit."""
        model = self.model
        known = list(model.jobs)
        for first in range(0, len(known), 1000):
            chunk = known[first : first + 1000]
            model.get(self.call("get", ids=chunk), chunk)
        model.list_queues(self.pages("queues"))
        model.list_workers(self.pages("workers"))
        self.check_constraints()
        expect(sorted(self.hear()) == sorted(model.published), "published to watchers", model.published)
        model.published = []
        cursor, problems = "0", []
        while True:
            cursor, *found = text(self.call("audit", cursor=cursor))
            problems += found
            if cursor == "0":
                break
        expect(not problems, "audit", *problems)

    def check_constraints(self):
        model = self.model
        if model.constraints:
            model.list_constraints(self.pages("constraints"))
        for id in model.constraints:
            model.usage(self.pages("usage", id=id), id)
        if model.has_lanes():
            for job in [job for job in model.jobs.values() if job.status == "queued"][:20]:
                model.explain(self.call("explain", id=job.id), job.id)

    def settle(self):
        """Six seconds later, everything due done: no record is left that was to go when they began."""
        model = self.model
        self.move_clock(model.latest - model.now)  # timers were set by the clock before it went back
        old = {job.id for job in model.beyond_limits()}
        self.move_clock(6000)
        for _ in range(200):
            reply = self.call("tick")
            model.tick(reply)
            model.after_operation()
            if reply[0] != 0:
                break
        else:
            raise Mismatch("tick never comes to an end")
        model.settled(old)
        self.check()


def parse_error(message):
    """`CODE path: message`; the path is absent when no argument is at fault."""
    head, colon, rest = message.partition(": ")
    code, blank, path = head.partition(" ")
    if colon and blank and " " not in path:
        return ErrorReply(code, path, rest)
    return ErrorReply(code, None, message[len(code) + 1 :])
