"""Runs one operation against the engine and against the model, and compares.

An operation is a list `[script, arguments, label]` of plain values, so that a failing sequence can be printed
and replayed. Jobs and workers are named by label (`job:12.0` is the first job of the operation labelled 12),
since ids are the engine's to give; a label that no operation has made stands for an id nobody knows.
"""

import os
from pathlib import Path

from redis.exceptions import RedisError, ResponseError

from driving.checks import Checks
from driving.connection import Connection
from driving.labels import NEVER, Labels
from driving.random_jobs import Generator
from driving.wire import DECODE, ENCODE, finished, page, parse_error, plain_document, spec_only, unpack_document
from jqmaster.bundle.build import build, builtin
from model import ErrorReply, Mismatch, Model, Refused, expect

NAMESPACE = "{model}"
# How operations are called that are in the library: by FCALL (functions), or as all others (scripts).
FORM = os.environ.get("JQ_FORM", "functions")
# Another tree of scripts/ and jqlua/ than this one.
SOURCE = Path(os.environ["JQ_SOURCE"]) if "JQ_SOURCE" in os.environ else None
START_MS = 1_700_000_000_000
MOST_LOOKED_AT = 1000  # jobs in one call
MOST_CHANNELS = 20  # to which the driver listens, of jobs and workers
NAMED = {"names", "ids", "top", "group"}  # fields of listings that are answered whole
# What a reply of an unexpected shape may bring the model to, wherever it looks at it.
WRONG = (AssertionError, LookupError, TypeError, ValueError, AttributeError, RedisError, OSError)


class Driver(Labels, Checks):
    def __init__(self, socket, form=FORM):
        self.namespace = NAMESPACE
        self.scripts = build(SOURCE, clock="settable") if SOURCE else builtin("settable")
        self.attach(socket)
        library = self.scripts.library
        if form == "functions" and library:
            self.redis.send("FUNCTION", "LOAD", "REPLACE", library.source)
            self.called |= {name: ("FCALL", f"{library.name}_{name}") for name in library.functions}
        self.refused = set()  # (script, code, path) that it met
        self.fresh()

    def attach(self, socket):
        """To a server, perhaps another one than before, which has the data."""
        self.redis = Connection(socket)
        self.listener = Connection(socket)
        shas = {name: self.redis.send("SCRIPT", "LOAD", script.source) for name, script in self.scripts.items()}
        known = getattr(self, "called", {})  # by operation: the command, and the name or sha that it calls
        self.called = {name: ("EVALSHA", sha) for name, sha in shas.items()} | known
        self.listen_anew()

    def listen_anew(self):
        """To what is published from now on."""
        self.listened = set()  # channels of jobs and workers
        self.heard_ended, self.heard_events = [], []
        self.listener.say(("SUNSUBSCRIBE",))
        self.listen("ended")
        self.listen("events")
        self.hear()
        self.heard_ended, self.heard_events = [], []

    def fresh(self):
        self.redis.send("FLUSHALL")
        self.begin()

    def begin(self):
        """In an empty namespace."""
        self.looked_at = {}  # id -> its document as it came, until something is called that may change it
        self.listen_anew()
        self.heard = []  # events of all, in order
        self.model = Model(self)
        self.move_clock(START_MS)
        self.call("setup")
        self.names = dict(NEVER)  # label -> id

    def generator(self, seed):
        """What makes random operations for it."""
        return Generator(seed, self)

    def listen(self, channel):
        self.listener.send("SSUBSCRIBE", f"{self.namespace}:{channel}")

    def listen_to(self, kind, id):
        """To the channel of a job or worker, from now on."""
        if len(self.listened) < MOST_CHANNELS and f"{kind}:{id}" not in self.listened:
            self.hear()
            self.listen(f"{kind}:{id}")
            self.listened.add(f"{kind}:{id}")
            (self.model.trace.listened if kind == "job" else self.model.trace.listened_workers).add(id)

    def close(self):
        self.redis.close()
        self.listener.close()

    def set_clock(self, now_ms):
        self.looked_at = {}
        self.redis.send("SET", self.namespace + ":clock", now_ms)

    def move_clock(self, delta_ms):
        self.set_clock(self.model.now + delta_ms)
        self.model.advance(delta_ms)
        self.model.sleepers.look_for_late(self.marked_ms)
        self.model.after_operation()

    def send(self, script, *args, keys=None):
        """The raw reply; raises redis.exceptions.ResponseError."""
        keys = (self.namespace, self.namespace + ":meta") if keys is None else keys
        self.looked_at = {}
        return self.caller(script).send(*self.called[script], len(keys), *keys, *args)

    def caller(self, script):
        """The connection by which a script is called."""
        return self.redis

    def call(self, script, **fields):
        args = ENCODE.get(script, spec_only)(**fields)
        try:
            reply = self.send(script, *args)
        except ResponseError as error:
            return parse_error(str(error))
        return self.decoded(script, fields, reply)

    def decoded(self, script, fields, reply):
        if script == "finish":
            return finished(reply, len(fields["outcomes"]))
        if script == "stats" and fields.get("series"):
            return [reply[0].decode(), *DECODE[script](reply[1:])]
        if script == "config" and fields.get("describe"):
            return plain_document(reply)
        decode = DECODE.get(script, page if self.model.is_listing(script) else None)
        return decode(reply) if decode else reply

    def look(self, id):
        """Who looks at a second one is about to look at many: then all come in one reply."""
        if id not in self.looked_at:
            found = self.looked_at
            others = [other for other in self.model.jobs if other not in found and other != id] if found else []
            ids = [id, *others][:MOST_LOOKED_AT]
            self.looked_at = found | dict(zip(ids, self.send("get", *ids), strict=True))
        raw = self.looked_at[id]
        return None if raw is None else unpack_document(raw)

    def look_at_worker(self, id):
        shown = (doc for doc in self.pages("workers") if doc["id"] == id and doc["state"] != "gone")
        return next(shown, None)

    def look_at_schedule(self, id):
        return self.call("schedules", ids=[id])[1]

    def look_at_counts(self, queue, name, from_ms):
        return next(iter(self.call("stats", by="minute", queue=queue, name=name, from_ms=from_ms, brief=True)), {})

    def look_at_events(self):
        self.hear()
        return self.heard_events

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
        elif self.model.is_listing(script) and not NAMED & set(fields):
            fields = self.resolve(fields)
            given = {name: value for name, value in fields.items() if name != "count"}
            self.model.operations["list_" + script](self.pages(script, **fields), **given)
        else:
            reply = self.compare(script, self.resolve(fields), label)
        self.model.after_operation()
        if script != "clock":
            self.model.sleepers.check_sleepers(self.marked_ms)
        return reply

    def all_found(self, script, **fields):
        """What goes on from page to page, to its end; gives how many jobs were changed in all."""
        cursor, total = "", 0
        for _ in range(1000):
            reply = self.call(script, cursor=cursor, **fields)
            if isinstance(reply, ErrorReply):
                return reply
            cursor, changed = reply
            total += changed
            if not cursor:
                return total
        raise Mismatch(script + " comes to no end")

    def compare(self, script, fields, label):
        if script == "usage" or (script == "stats" and fields.get("series")):
            reply = self.pages(script, **fields)
        elif "where" in fields:
            reply = self.all_found(script, **fields)
        else:
            reply = self.call(script, **fields)
        return self.agree(script, fields, label, reply)

    def agree(self, script, fields, label, reply):
        """Has the model check a reply, and do the same."""
        name = script
        if self.model.is_listing(script):
            name, reply = "list_" + script, reply if isinstance(reply, ErrorReply) else reply[1:]
        try:
            self.model.operations[name](reply, **fields)
        except Refused as refused:
            agreed = isinstance(reply, ErrorReply) and reply[:2] == refused.args
            expect(agreed, "expected a refusal", refused.args, reply)
            self.refused.add((script, *refused.args))
            return reply
        except WRONG:
            expect(not isinstance(reply, ErrorReply), "refused without a reason", reply)
            raise
        expect(not isinstance(reply, ErrorReply), "refused without a reason", reply)
        self.name(script, label, reply)
        if script == "register":
            self.listen_to("worker", reply)
        self.name_new_jobs()
        return reply

    def name_new_jobs(self):
        """Those that schedules made are called by the schedule and the moment."""
        for job in list(self.model.jobs.values()):
            if job.schedule:
                self.names.setdefault(f"job:{job.schedule}.{job.schedule_ms}", job.id)
            if job.track:
                self.listen_to("job", job.id)
        for name in self.model.workers.names_of_workers():
            self.listen_to("worker", name)

    def marked_ms(self, channel):
        """When the channel was marked; None where it is not."""
        score = self.redis.send("ZSCORE", f"{self.namespace}:wake:{channel}", "1")
        return None if score is None else float(score)

    def holders(self, unique):
        """The ids of the jobs whose a unique key is."""
        return (self.redis.send("GET", f"{self.namespace}:unique:{unique}") or b"").decode().split()

    def respite_ms(self):
        """When something was found to be long over."""
        return int(self.redis.send("GET", f"{self.namespace}:respite") or -15_000)

    def is_asleep(self, who, channel):
        return self.redis.send("ZSCORE", f"{self.namespace}:asleep:{channel}", who) is not None

    def wake(self, on, **then):
        """Takes the channel's marker, if it is set, as a sleeper does, who then picks. While he is told to
        pick again at once, and can take more, he does, as another request: nobody else is woken for what is
        ready."""
        if not self.redis.send("ZPOPMIN", f"{self.namespace}:wake:{on}"):
            return
        ((script, fields),) = then.items()
        most = fields.get("limit", 100) if script == "assign" else fields.get("count", 1)
        for _ in range(1000):
            reply = self.compare(script, self.resolve(fields), None)
            wait = fields.get("wait") if script == "pick" else None
            is_quiet = wait and self.model.workers.is_quiet(self.resolve(fields["worker"]))
            # He will come again, under another name; or wakes another on his own channel alone.
            if isinstance(reply, ErrorReply) or (is_quiet and wait["on"] != on):
                self.redis.send("ZADD", f"{self.namespace}:wake:{on}", self.model.now, "1")
            if isinstance(reply, ErrorReply) or is_quiet:
                return
            is_asleep = wait and self.is_asleep(self.resolve(fields["worker"]), wait["on"])
            # What a repeated request answers says nothing of who sleeps.
            if reply[0] != (1 if wait else 0) or len(reply) > most or (is_asleep and "request" not in fields):
                return
            self.model.after_operation()
            fields = {name: value for name, value in fields.items() if name != "request"}
        raise Mismatch("who was woken is told to pick at once again, and comes to no end")
