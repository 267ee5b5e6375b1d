"""Runs one operation against the engine and against the model, and compares.

An operation is a list `[script, arguments, label]` of plain values, so that a failing sequence can be printed
and replayed. Jobs and workers are named by label (`job:12.0` is the first job of the operation labelled 12),
since ids are the engine's to give; a label that no operation has made stands for an id nobody knows.
"""

import os
from collections import Counter
from pathlib import Path

from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ResponseError

from driving.wire import DECODE, ENCODE, finished, page, parse_error, plain_document, spec_only, text
from jqmaster.bundle.build import build
from jqmaster.engine.scripts import builtin
from model import ErrorReply, Mismatch, Model, Refused, expect

NAMESPACE = "{model}"
# How operations are called that are in the library: by FCALL (functions), or as all others (scripts).
FORM = os.environ.get("JQ_FORM", "functions")
# Another tree of scripts/ and jqlua/ than this one.
SOURCE = Path(os.environ["JQ_SOURCE"]) if "JQ_SOURCE" in os.environ else None
START_MS = 1_700_000_000_000
UNKNOWN = {"job": "00000000000001", "worker": "w00000000000001"}
NEVER = {"job:never": "fffffffffffff0"}  # later than any id there is
EVENTS = NAMESPACE + ":events"
MOST_CHANNELS = 20  # to which the driver listens, of jobs and workers
NAMED = {"names", "ids", "top", "group"}  # fields of listings that are answered whole


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


class Driver:
    def __init__(self, socket, form=FORM):
        self.redis = Connection(socket)
        self.listener = Connection(socket)
        self.scripts = build(SOURCE, clock="settable") if SOURCE else builtin("settable")
        self.called = {}  # by operation: the command, and the name or sha that it calls
        for name, script in self.scripts.items():
            self.called[name] = "EVALSHA", self.redis.send("SCRIPT", "LOAD", script.source)
        library = self.scripts.library
        if form == "functions" and library:
            self.redis.send("FUNCTION", "LOAD", "REPLACE", library.source)
            self.called |= {name: ("FCALL", f"{library.name}_{name}") for name in library.functions}
        self.refused = set()  # (script, code, path) that it met
        self.heard_ended, self.heard_events = [], []
        self.listen("ended")
        self.listen("events")
        self.listened = set()  # other channels
        self.fresh()

    def fresh(self):
        self.redis.send("FLUSHALL")
        for channel in self.listened:
            self.listener.send("SUNSUBSCRIBE", f"{NAMESPACE}:{channel}")
        self.hear()
        self.listened = set()
        self.heard_ended, self.heard_events = [], []
        self.heard = []  # events of all, in order
        self.model = Model(
            self.look,
            self.look_at_worker,
            lambda id: self.pages("usage", id=id),
            lambda id: self.call("schedules", ids=[id])[1],
            self.ids_after,
            self.look_at_events,
        )
        self.move_clock(START_MS)
        self.call("setup")
        self.names = dict(NEVER)  # label -> id

    def listen(self, channel):
        self.listener.send("SSUBSCRIBE", f"{NAMESPACE}:{channel}")

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
        self.redis.send("SET", NAMESPACE + ":clock", now_ms)

    def move_clock(self, delta_ms):
        self.set_clock(self.model.now + delta_ms)
        self.model.advance(delta_ms)
        self.model.after_operation()

    def send(self, script, *args, keys=(NAMESPACE, NAMESPACE + ":meta")):
        """The raw reply; raises redis.exceptions.ResponseError."""
        return self.redis.send(*self.called[script], len(keys), *keys, *args)

    def call(self, script, **fields):
        args = ENCODE.get(script, spec_only)(**fields)
        try:
            reply = self.send(script, *args)
        except ResponseError as error:
            return parse_error(str(error))
        if script == "finish":
            return finished(reply, len(fields["outcomes"]))
        if script == "stats" and fields.get("series"):
            return [reply[0].decode(), *DECODE[script](reply[1:])]
        if script == "config" and fields.get("describe"):
            return plain_document(reply)
        decode = DECODE.get(script, page if self.model.is_listing(script) else None)
        return decode(reply) if decode else reply

    def look(self, id):
        return self.call("get", ids=[id])[0]

    def look_at_worker(self, id):
        return next((doc for doc in self.pages("workers") if doc["id"] == id), None)

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
        elif script == "take_over":
            self.redis.send("MSET", NAMESPACE + ":server", "another", NAMESPACE + ":at-functions", "elsewhere")
            self.redis.send("DEL", NAMESPACE + ":at-scripts")
            self.model.arrival.take_over()
        elif script == "wake":
            self.wake(**fields)
        elif script == "settle":
            self.settle()
        elif script == "check":
            self.check()
        elif self.model.is_listing(script) and not NAMED & set(fields):
            self.model.operation("list_" + script)(self.pages(script, **fields), **self.without_count(fields))
        else:
            reply = self.compare(script, self.resolve(fields), label)
        self.model.after_operation()
        if script != "clock":
            self.model.sleepers.check_sleepers(self.is_marked)
        return reply

    def without_count(self, fields):
        return {name: self.resolve(value) for name, value in fields.items() if name != "count"}

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
        elif "where" in fields and script != "bulk":
            reply = self.all_found(script, **fields)
        else:
            reply = self.call(script, **fields)
        change, name = self.model.access.before_change(script, fields), script
        if self.model.is_listing(script):
            name, reply = "list_" + script, reply if isinstance(reply, ErrorReply) else reply[1:]
        try:
            told = {name: value for name, value in fields.items() if name != "actor" or script == "mark"}
            self.model.operation(name)(reply, **told)
        except Refused as refused:
            agreed = isinstance(reply, ErrorReply) and reply[:2] == refused.args
            expect(agreed, "expected a refusal", refused.args, reply)
            self.refused.add((script, *refused.args))
            return reply
        if change:
            self.model.access.add_to_trail(change, reply, fields)
        if script == "enqueue":
            self.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(reply)}
        elif script == "finish":
            follow = [pair for answer in reply[0] if isinstance(answer, list) for pair in answer[1:]]
            self.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(follow)}
        elif script == "register":
            self.names[f"worker:{label}"] = reply
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

    def is_marked(self, channel):
        return self.redis.send("EXISTS", f"{NAMESPACE}:wake:{channel}") == 1

    def wake(self, on, **then):
        """Takes the channel's marker, if it is set, as a sleeper does, who then picks. While he is told to
        pick again at once, and can take more, he does, as another request: nobody else is woken for what is
        ready."""
        if not self.redis.send("ZPOPMIN", f"{NAMESPACE}:wake:{on}"):
            return
        ((script, fields),) = then.items()
        most = fields.get("limit", 100) if script == "assign" else fields.get("count", 1)
        for _ in range(1000):
            reply = self.compare(script, self.resolve(fields), None)
            if isinstance(reply, ErrorReply):  # he will come again, under another name
                self.redis.send("ZADD", f"{NAMESPACE}:wake:{on}", 0, "1")
                return
            if reply[0] != 0 or len(reply) > most:
                return
            self.model.after_operation()
            fields = {name: value for name, value in fields.items() if name != "request"}
        raise Mismatch("who was woken is told to pick at once again, and comes to no end")

    def resolve(self, value):
        """Labels replaced by ids and tokens."""
        if isinstance(value, dict):
            found = {k: self.resolve(v) for k, v in value.items() if k != "token"}
            if "token" in value:
                found["token"] = self.token(found["id"], value["token"])
            if "jobs" in value and "worker" in value:
                found["jobs"] = [
                    [id, self.token(id, said), *rest]
                    for (id, *_), (_, said, *rest) in zip(found["jobs"], value["jobs"], strict=True)
                ]
            return found
        if isinstance(value, list):
            return [self.resolve(v) for v in value]
        if isinstance(value, str) and value.startswith(("job:", "worker:")):
            return self.names.get(value, UNKNOWN[value.split(":")[0]])
        return value

    def token(self, id, said):
        """`3`: what attempt 3 of this job was given; `forged:3`: that with another digit; `bare:3`: without
        any; `job:5.0`: the last one of another job."""
        if isinstance(said, str) and said.startswith("job:"):
            other = self.model.jobs.get(self.names.get(said))
            return (other and other.token) or "1-000000000000"
        kind, number = said.split(":") if isinstance(said, str) else ("given", said)
        token = self.model.life.tokens.get((id, int(number)), f"{number}-000000000000")
        if kind == "forged":
            return token[:-1] + ("1" if token[-1] == "0" else "0")
        return f"{number}-" if kind == "bare" else token

    # ---- what must hold at any time ----

    def hear(self):
        """What was published since the last time."""
        self.listener.connection.send_command("PING")
        ended, heard = [], []
        while (message := self.listener.read())[0] != b"pong":
            if message[0] != b"smessage":
                continue
            kind, _, id = message[1].decode().removeprefix(NAMESPACE + ":").partition(":")
            if kind == "ended":
                ended.append(tuple(message[2].decode().split(" ")))
            elif kind == "worker":
                heard.append((id, message[2].decode()))
            else:
                heard.append((id or None, plain_document(message[2])))
        self.heard_ended += ended
        self.heard_events += heard

    def check(self):
        """Every document, every count, everything published, and the engine's own audit."""
        model = self.model
        known = list(model.jobs)
        for first in range(0, len(known), 1000):
            chunk = known[first : first + 1000]
            model.work.get(self.call("get", ids=chunk), chunk)
        model.queues.list_queues(self.pages("queues"))
        model.workers.list_workers(self.pages("workers"))
        model.access.list_keys(self.pages("keys", digests=True), digests=True)
        model.access.list_trail(self.pages("trail"))
        model.marks.list_marks(self.pages("marks"))
        self.check_constraints()
        self.check_heard()
        self.check_records()
        cursor, problems = "0", []
        while True:
            cursor, *found = text(self.call("audit", cursor=cursor))
            problems += found
            if cursor == "0":
                break
        expect(not problems, "audit", *problems)

    def check_heard(self):
        model = self.model
        self.hear()
        # Ends of jobs that others wait for, or that were retried, may be published though nobody watches.
        missing = Counter(model.life.published) - Counter(self.heard_ended)
        expect(not missing, "not published to watchers", missing)
        unknown = [id for id, _ in self.heard_ended if id not in model.links.ended]
        expect(not unknown, "published ends of jobs that did not end", unknown)
        self.heard_ended, model.life.published = [], []
        model.trace.check_events(self.heard_events)
        self.heard += [event for about, event in self.heard_events if about is None]
        self.heard_events = []
        if self.heard:
            stream = [plain_document(fields[1]) for _, fields in self.redis.send("XRANGE", EVENTS, "-", "+")]
            expect(stream == self.heard[len(self.heard) - len(stream) :], "the stream of events")

    def check_records(self):
        """The model knows all jobs there are."""
        unknown = set(self.ids_after("")) - set(self.model.jobs)
        expect(not unknown, "records of unknown jobs", unknown)
        missing = [job for job in self.model.jobs.values() if not job.may_be_gone and not self.is_there(job.id)]
        expect(not missing, "no records of jobs", missing)

    def is_there(self, id):
        return self.redis.send("EXISTS", f"{NAMESPACE}:j:{id}") == 1

    def ids_after(self, id):
        """The ids of all jobs that have a record and were made after this one, in order."""
        prefix = f"{NAMESPACE}:j:"
        keys = [key.decode().removeprefix(prefix) for key in self.redis.send("KEYS", prefix + "*")]
        return sorted(key for key in keys if key > id)

    def check_constraints(self):
        model = self.model
        if model.limits.constraints:
            model.limit_documents.list_constraints(self.pages("constraints"))
        for id in model.limits.constraints:
            model.limit_documents.usage(self.pages("usage", id=id), id)
        if model.order.has_lanes():
            for job in [job for job in model.jobs.values() if job.status == "queued"][:20]:
                model.limit_documents.explain(self.call("explain", id=job.id), job.id)

    def settle(self):
        """Six seconds later, everything due done: no record is left that was to go when they began."""
        model = self.model
        self.move_clock(model.latest - model.now)  # timers were set by the clock before it went back
        old = {job.id for job in model.life.beyond_limits()}
        self.move_clock(6000)
        for _ in range(200):
            reply = self.call("tick")
            model.work.tick(reply)
            model.after_operation()
            if reply[0] != 0:
                break
        else:
            raise Mismatch("tick never comes to an end")
        model.settled(old)
        self.check()
