"""What happens to a job: each of its states, and what a reader is shown of it."""

import re
from dataclasses import MISSING, dataclass, field, fields

from jqmaster.manifest.fields import FIELDS
from model.common import ENDED, EVENTS, SOME_TEXT, WAITING, ErrorReply, Refused, entries, expect, matches, ms, same
from model.part import Part
from model.trace import cut

MOST_DEPENDENTS = 100  # that a document shows
PASSED = {one.name: one for one in FIELDS if one.passed}


@dataclass(repr=False)
class Job:
    id: str
    argument: bytes
    name: str
    queue: str
    created_ms: int
    priority: int = 0
    max_retry: int = 10
    keep_result: bool = False
    timeout: float = 30
    tags: list | None = None
    unique: str | None = None
    unique_for: float | None = None
    unique_within: float | None = None
    depends: list | None = None  # ids
    if_failed: str | None = None
    max_runtime: float | None = None
    max_lapses: int | None = None
    track: bool = False
    passed: dict = field(default_factory=dict)  # what means nothing to the engine
    notify: str | None = None
    webhook: dict | None = None  # of a notification: where it goes, and what it tells
    schedule: str | None = None
    schedule_ms: int | None = None
    status: str | None = None  # None: not yet there
    attempt: int = 0
    token: str = ""  # of the last attempt
    retry_count: int = 0
    lapses: int = 0  # that were counted apart
    retry: dict = field(default_factory=dict)  # its own retry_base, retry_cap, retry_jitter
    due_ms: int | None = None
    expires_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    worker_id: str | None = None
    reason: str | None = None
    message: str | None = None
    error: bytes | None = None
    result: bytes | None = None
    result_until_ms: int | None = None
    result_read: bool = False
    readers: set = field(default_factory=set)  # those that depend on it and have not ended: its result stays for them
    group: str | None = None  # of the last failure
    progress: float | None = None
    progress_message: str | None = None
    ready_ms: int | None = None
    again_ms: int = 0  # when it became ready again, after an attempt
    waits_for: set = field(default_factory=set)
    may_start_ms: int = 0  # of a blocked job, once it is free
    is_doomed: bool | None = False  # to be cancelled by a sweep; None: maybe
    has_other_facts: bool = False  # than when it became ready: constraints look anew when it waits again
    events: list = field(default_factory=list)  # its history
    last: tuple = ()  # how the last attempt ended: attempt, by what, with which answer
    goes_at_once: bool = False  # at the end of this operation
    may_be_gone: bool = False  # was beyond a limit of retention; the engine drops it when it gets there

    def __repr__(self):
        told = [f for f in fields(self) if f.default is MISSING or getattr(self, f.name) != f.default]
        return "Job(" + ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in told) + ")"


class Life(Part):
    def __init__(self, model):
        super().__init__(model)
        self.tokens = {}  # (id, attempt) -> the token that the engine gave
        self.watched = set()
        self.published = []  # (id, state), as watchers must hear them

    # ---- the states of a job; every change of one goes through here ----

    def start(self, job, worker):
        job.status, job.worker_id, job.attempt = "running", worker, job.attempt + 1
        job.started_ms = self.now
        job.due_ms = self.lease_end(job)
        self.model.transition(job, "queued", "started")
        self.limits.started(job)
        self.order.started(job)

    def lease_end(self, job):
        due_ms = self.now + ms(job.timeout)
        return due_ms if job.max_runtime is None else min(due_ms, job.started_ms + ms(job.max_runtime))

    def requeue(self, job, due_ms=0, by="time", event=None):
        was = job.status
        job.status, job.due_ms = ("scheduled", due_ms) if due_ms > self.now else ("queued", None)
        if by == "release":
            job.last = (job.attempt, by, job.status)
            event = "released"
        if event or job.status != was:
            self.model.transition(job, was, event)

    def fail(self, job, by, reason, should_retry=True, message="", error=None, group=None, retry_in=None):
        is_overrun = job.max_runtime is not None and self.now >= job.started_ms + ms(job.max_runtime)
        if by == "lapse" and job.max_lapses is not None and not is_overrun:
            job.lapses += 1
            count, most = job.lapses, job.max_lapses
            reason = "timeout" if count <= most else "lapses"
        else:
            job.retry_count += 1
            count, most = job.retry_count, job.max_retry
        job.reason, job.message, job.error, job.group = reason, message, error, group or reason
        if not should_retry or count > most:
            return self.end(job, "error", by)
        job.status = "retrying"
        job.last = (job.attempt, by, "retrying")
        self.put_off(job, count, retry_in)
        self.model.transition(job, "running", EVENTS[by])

    def put_off(self, job, count, retry_in):
        """Until its backoff after so many failures or lapses is over."""
        if retry_in is not None:
            job.due_ms = self.now + ms(retry_in)
            return
        names = ("retry_base", "retry_cap", "retry_jitter")
        base, cap, jitter = (job.retry.get(name, self.queues.setting(job.queue, name)) for name in names)
        delay = min(cap, base * 2.0 ** min(count - 1, 1000)) * 1000
        job.due_ms = self.now + round(delay)
        if jitter and delay:
            doc = self.engine.look(job.id) or {}
            low, due = job.due_ms - round(delay * jitter) - 1, doc.get("due_ms") or 0
            # If not, what follows another outcome of the call has put it off; if that is wrong, `get` tells.
            job.due_ms = due if low <= due <= job.due_ms else job.due_ms

    def begin_anew(self, job):
        job.retry_count = job.lapses = 0

    def go_to(self, job, queue):
        """A job that does not run belongs to another queue; false where that is no other."""
        if queue == job.queue:
            return False
        self.statistics.count(job, "moved")
        job.events.append({"event": "moved", "time_ms": self.now, "message": cut(f"from {job.queue}")})
        self.change_queue(job, queue)
        return True

    def change_queue(self, job, queue):
        job.queue, job.has_other_facts = queue, True
        self.queues.records.setdefault(queue, {"paused": False, "max_waiting": 0})

    def fail_unstarted(self, job, reason):
        """A job that ends before it ran: `expired`, or `dependency`."""
        job.reason, job.message, job.error, job.group = reason, SOME_TEXT, None, reason
        self.end(job, "error", None)

    def end(self, job, state, by):
        was = job.status
        job.status, job.ended_ms, job.due_ms = state, self.now, None
        if by:
            job.last = (job.attempt, by, state)
        if job.id in self.watched:
            self.watched.discard(job.id)
            self.published.append((job.id, state))
        job.goes_at_once = not self.queues.most_kept(job.queue, state) and job.result is None
        self.model.transition(job, was, EVENTS.get(by) or (state if state in ("cancelled", "skipped") else job.reason))

    def has_result(self, job):
        return job.result is not None and (self.now < job.result_until_ms or bool(job.readers))

    def beyond_limits(self):
        """The records that retention wants gone."""
        gone, ended = [], {}
        for job in self.jobs.values():
            if job.status in ENDED:
                ended.setdefault((job.status, job.queue), []).append(job)
        for state in ENDED:
            for queue in self.queues.records:
                ttl, most = (self.queues.kept(queue, state, limit) for limit in ("ttl", "max"))
                jobs = ended.get((state, queue), ())
                jobs = sorted((j for j in jobs if not self.has_result(j)), key=lambda j: (j.ended_ms, j.id))
                excess = len(jobs) - most
                old = [not ttl or j.ended_ms + ms(ttl) <= self.now for j in jobs]
                gone += [j for i, j in enumerate(jobs) if i < excess or old[i]]
        return gone

    def present(self, id, gone):
        """The job, unless it is unknown, or old and `gone` says that the engine answered so."""
        job = self.jobs.get(id)
        if job and job.may_be_gone and gone:
            del self.jobs[id]
            return None
        return job

    def named(self, reply, id):
        """The job that a call is about."""
        job = self.present(id, isinstance(reply, ErrorReply) and reply[:2] == ("NOTFOUND", "id"))
        if not job:
            raise Refused("NOTFOUND", "id")
        return job

    # ---- documents ----

    def document(self, job):
        doc = {k: getattr(job, k) for k in (
            "id", "name", "queue", "status", "priority", "attempt", "retry_count", "max_retry", "timeout",
            "keep_result", "created_ms", "argument", "worker_id", "started_ms", "due_ms", "ended_ms",
            "expires_ms", "reason", "message", "error", "tags", "unique", "unique_for",
            "unique_within", "max_runtime", "max_lapses", "ready_ms", "schedule", "schedule_ms", "progress",
            "progress_message", "group", "depends", "if_failed", "notify", "webhook")}  # fmt: skip
        doc |= job.passed
        doc["track"], doc["lapses"] = job.track or None, job.lapses or None
        doc["waits_for"] = sorted(job.waits_for) if job.status == "blocked" else None
        doc["dependents"] = sorted(one.id for one in self.links.dependents(job.id))[:MOST_DEPENDENTS] or None
        doc["result"] = job.result if self.has_result(job) else None
        doc.update(job.retry)
        return {k: v for k, v in doc.items() if v is not None}

    def check_document(self, shown, expected, what):
        """`if_failed` may be left out where it is the default; the order of ids is not said."""

        def plain(doc):
            doc = {k: sorted(v) if k in ("depends", "waits_for", "dependents") else v for k, v in doc.items()}
            return {k: v for k, v in doc.items() if (k, v) not in (("if_failed", "wait"), ("track", False))}

        same(plain(shown), plain(expected), what)

    def picked_document(self, job):
        keys = ("id", "token", "name", "queue", "priority", "attempt", "retry_count", "timeout")
        doc = {k: getattr(job, k) for k in keys}
        more = {k: getattr(job, k) for k in ("depends", "schedule", "schedule_ms", "max_runtime", "webhook")}
        more |= {k: v for k, v in job.passed.items() if PASSED[k].told}
        return doc | {k: v for k, v in more.items() if v is not None}

    def waiting(self, queue):
        return sum(j.queue == queue and j.status in WAITING for j in self.jobs.values())

    def is_open(self, job, queues):
        """Whether the job waits in one of these queues, and it is not paused."""
        named = any(matches(entry, job.queue) for entry in entries(queues))
        return named and not self.queues.records[job.queue]["paused"]

    def give_token(self, job, doc):
        """Notes the token of a job that was started, from its document."""
        token = doc.get("token", "")
        expect(re.fullmatch(f"{job.attempt}-[0-9a-f]{{12}}", token), "no token", doc)
        job.token = self.tokens[job.id, job.attempt] = token

    def check_tokens(self, started):
        """Of the jobs that one call started."""
        digits = {job.token.partition("-")[2] for job in started}
        expect(len(digits) <= 1, "tokens of one call", digits)

    def holds(self, id, token):
        job = self.jobs.get(id)
        return job if job and job.status == "running" and job.token == token else None

    def attempt_of(self, job, token):
        """Which attempt of a job a token is of, 0 for none: of one before the last the number is enough."""
        number = int(token.partition("-")[0])
        return 0 if number == job.attempt and token != job.token else number
