"""Half of the reference model: what happens to a job and what the clock does. Operations: model.py."""

import re
from collections import namedtuple
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatchcase

STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled")
ENDED = ("done", "error", "cancelled")
WAITING = ("queued", "scheduled", "blocked", "retrying")
DEFAULTS = {
    "retry_base": 1, "retry_cap": 3600, "retry_jitter": 0.1, "result_ttl": 3600, "result_grace": 60,
    "request_ttl": 600, "done_ttl": 86400, "done_max": 10000, "error_ttl": 2592000, "error_max": 10000,
    "cancelled_ttl": 86400, "cancelled_max": 10000, "cancel_running": True, "worker_ttl": 30,
    "lease_grace": 0, "events_max": 0, "stats": True, "trail_max": 10000,
}  # fmt: skip
SWEEP = 100  # steps a pick or an assign takes before it chooses
DEAR = 20  # so many a call takes at least, however much they cost

ErrorReply = namedtuple("ErrorReply", "code path message")


class SomeText(str):
    """Equal to any text: what the engine says about a failure of its own finding."""

    def __eq__(self, other):
        return isinstance(other, str) and other != ""

    __hash__ = None


SOME_TEXT = SomeText()
# How an attempt ended -> the event of its history.
EVENTS = {"success": "done", "failure": "failed", "lapse": "lapsed", "cancel": "cancelled"}


class Mismatch(AssertionError):
    """The engine's reply is not one the protocol allows."""

    def __init__(self, what, *details):
        super().__init__(what + "".join(f"\n    {detail!r}" for detail in details))
        self.details = details


class Refused(Exception):
    """The model refuses; the engine must have answered with this code and path, and changed nothing."""


def expect(condition, what, *details):
    if not condition:
        raise Mismatch(what, *details)


def accepted(reply):
    expect(not isinstance(reply, ErrorReply), "refused without a reason", reply)


def same(reply, expected, what):
    expect(reply == expected, f"{what}: got, expected", reply, expected)


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
    depends: list | None = None  # ids
    if_failed: str | None = None
    max_runtime: float | None = None
    track: bool = False
    headers: dict | None = None
    schedule: str | None = None
    schedule_ms: int | None = None
    status: str | None = None  # None: not yet there
    attempt: int = 0
    token: str = ""  # of the last attempt
    retry_count: int = 0
    retry: dict = field(default_factory=dict)  # its own retry_base, retry_cap, retry_jitter
    due_ms: int | None = None
    expires_ms: int | None = None
    started_ms: int | None = None
    excused_ms: int | None = None  # the end of a lease that got a pause on top
    ended_ms: int | None = None
    worker_id: str | None = None
    finished_at: str | None = None
    reason: str | None = None
    message: str | None = None
    error: bytes | None = None
    result: bytes | None = None
    result_until_ms: int | None = None
    result_read: bool = False
    group: str | None = None  # of the last failure
    progress: float | None = None
    progress_message: str | None = None
    ready_ms: int | None = None
    waits_for: set = field(default_factory=set)
    may_start_ms: int = 0  # of a blocked job, once it is free
    if_failed_changed: bool = False
    is_doomed: bool | None = False  # to be cancelled by a sweep; None: maybe
    has_other_facts: bool = False  # than when it became ready: constraints look anew when it waits again
    events: list = field(default_factory=list)  # its history
    last: tuple = ()  # how the last attempt ended: attempt, by what, with which answer
    goes_at_once: bool = False  # at the end of this operation
    may_be_gone: bool = False  # was beyond a limit of retention; the engine drops it when it gets there

    def __repr__(self):
        told = [f for f in fields(self) if f.default is MISSING or getattr(self, f.name) != f.default]
        return "Job(" + ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in told) + ")"


def ms(seconds):
    return round(seconds * 1000)


def entries(queues):
    return [queues] if isinstance(queues, str) else list(queues)


def matches(entry, queue):
    return fnmatchcase(queue, entry.replace("[", "[[]").replace("?", "[?]"))


class Jobs:
    def __init__(self, look, look_at_worker, look_at_keys, look_at_schedule, look_for_new, look_at_events):
        """Three of them: id -> the engine's document, or None. look_at_keys: a constraint's id -> documents
        of `usage`. look_for_new: an id -> those after it. look_at_events: what was published since the last
        check. Used only where the engine has a choice."""
        self.look = look
        self.look_at_worker = look_at_worker
        self.look_at_keys = look_at_keys
        self.look_at_schedule = look_at_schedule
        self.look_for_new = look_for_new
        self.look_at_events = look_at_events
        self.now = 0
        self.jobs = {}
        self.workers = {}
        self.queues = {}  # name -> {paused, max_waiting}
        self.settings = dict(DEFAULTS)
        self.own_settings = {}  # queue -> settings of its own
        self.tokens = {}  # (id, attempt) -> the token that the engine gave
        self.requests = {}  # (operation, token) -> (until when it is remembered, the answer)
        self.watched = set()
        self.latest = 0  # the latest moment ever
        self.latest_id_ms = 0  # that of the greatest id there may be
        self.is_taken_over = False  # since the last id
        self.least_id = 0  # that there can be next
        self.published = []  # (id, state), as watchers must hear them
        self.last_id = ""
        self.expired = 0  # jobs that the last sweep, or the pick behind it, found expired

        self.awake_ms = self.ran_ms = 0  # since when calls came without a long break, and the last one noted
        self.stood = (0, 0)  # from when to when none could come, the last time

    # ---- the states of a job; every change of one goes through here ----

    def start(self, job, worker):
        job.status, job.worker_id, job.attempt = "running", worker, job.attempt + 1
        job.started_ms = self.now
        job.due_ms = self.lease_end(job)
        self.transition(job, "queued", "started")

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
            self.transition(job, was, event)

    def fail(self, job, by, reason, should_retry=True, message="", error=None, finished_at=None, group=None):
        job.retry_count += 1
        job.finished_at = finished_at
        job.reason, job.message, job.error, job.group = reason, message, error, group or reason
        if not should_retry or job.retry_count > job.max_retry:
            return self.end(job, "error", by)
        job.status = "retrying"
        job.last = (job.attempt, by, "retrying")
        names = ("retry_base", "retry_cap", "retry_jitter")
        base, cap, jitter = (job.retry.get(name, self.setting(job.queue, name)) for name in names)
        delay = min(cap, base * 2.0 ** min(job.retry_count - 1, 1000)) * 1000
        job.due_ms = self.now + round(delay)
        if jitter and delay:
            doc = self.look(job.id) or {}
            low, due = job.due_ms - round(delay * jitter) - 1, doc.get("due_ms") or 0
            # If not, what follows another outcome of the call has put it off; if that is wrong, `get` tells.
            job.due_ms = due if low <= due <= job.due_ms else job.due_ms
        self.transition(job, "running", EVENTS[by])

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
        job.goes_at_once = not self.most_kept(job.queue, state) and job.result is None
        self.transition(job, was, EVENTS.get(by) or ("cancelled" if state == "cancelled" else job.reason))

    def transition(self, job, was, event=None):
        """Every change of a state comes by here. `event` is what the job's history calls it, if it does."""

    def most_kept(self, queue, state):
        """Of how many jobs that end so the records are kept."""
        return self.setting(queue, state + "_max") if self.setting(queue, state + "_ttl") else 0

    def setting(self, queue, name):
        own = self.own_settings.get(queue, {})
        return own.get(name, self.settings[name])

    # ---- what the clock does ----

    def has_result(self, job):
        return job.result is not None and self.now < job.result_until_ms

    def beyond_limits(self):
        """The records that retention wants gone."""
        gone = []
        for state in ENDED:
            for queue in self.queues:
                ttl, most = (self.setting(queue, state + limit) for limit in ("_ttl", "_max"))
                jobs = [j for j in self.jobs.values() if (j.status, j.queue) == (state, queue)]
                jobs = sorted((j for j in jobs if not self.has_result(j)), key=lambda j: (j.ended_ms, j.id))
                excess = len(jobs) - most
                old = [not ttl or j.ended_ms + ms(ttl) <= self.now for j in jobs]
                gone += [j for i, j in enumerate(jobs) if i < excess or old[i]]
        return gone

    def after_operation(self):
        """Records of which none are kept go with the operation, others are free to go."""
        self.jobs = {id: job for id, job in self.jobs.items() if not job.goes_at_once}
        for job in self.beyond_limits():
            job.may_be_gone = True

    def present(self, id, gone):
        """The job, unless it is unknown, or old and `gone` says that the engine answered so."""
        job = self.jobs.get(id)
        if job and job.may_be_gone and gone:
            del self.jobs[id]
            return None
        return job

    def come_by(self):
        """A call that may end leases: what nobody could renew, as nobody could call, is excused."""
        if 0 <= self.now - self.ran_ms < 1000:
            return
        ttl_ms = ms(self.settings["worker_ttl"])
        ends = [(job.due_ms, self.handed_on_ms(job)) for job in self.jobs.values() if job.status == "running"]
        ends += [(worker.seen_ms + ttl_ms,) * 2 for worker in self.workers.values()]
        is_late = any(self.ran_ms <= end_ms and over_ms < self.now - 1000 for end_ms, over_ms in ends)
        if self.ran_ms - self.awake_ms >= 60_000 and is_late:
            begin, passed = self.ran_ms, self.now - self.ran_ms
            self.stood = (begin, self.now)
            for worker in self.workers.values():
                if begin - ttl_ms <= worker.seen_ms <= self.now:
                    worker.seen_ms = min(worker.seen_ms + passed, self.now)
        elif not 0 <= self.now - self.ran_ms <= 120_000:
            self.awake_ms = self.now
        self.ran_ms = self.now

    def excuse(self, job):
        """Whether a lease that is over gets the time on top in which nobody could renew it."""
        begin, end = self.stood
        if not begin <= job.due_ms < end + ms(job.timeout) or job.excused_ms == job.due_ms:
            return False
        later_ms = job.due_ms + end - begin
        if job.max_runtime is not None:
            later_ms = min(later_ms, job.started_ms + ms(job.max_runtime))
        if later_ms <= job.due_ms:
            return False
        job.due_ms = job.excused_ms = later_ms
        return True

    def dead_workers(self):
        return [w for w in self.workers.values() if w.seen_ms + ms(self.settings["worker_ttl"]) <= self.now]

    def is_due(self, job):
        if job.status == "running":
            return self.handed_on_ms(job) <= self.now
        if job.status in WAITING and self.has_expired(job):
            return True
        return job.status in ("scheduled", "retrying") and job.due_ms <= self.now

    def handed_on_ms(self, job):
        return job.due_ms + ms(self.setting(job.queue, "lease_grace"))

    def has_expired(self, job):
        return job.attempt == 0 and job.expires_ms is not None and job.expires_ms <= self.now

    def sweep(self, left_some):
        """Does what is due; when the engine left some of it, exactly as far as the engine got."""
        self.expired = 0
        for worker in self.dead_workers():
            for job in self.held(worker):
                if not left_some or self.moved(job):
                    self.fail(job, "lapse", "timeout", message=SOME_TEXT)
            shown = self.look_at_worker(worker.id) if left_some else None
            if not shown:
                del self.workers[worker.id]
            elif shown["state"] == "unreachable":  # some of its jobs are left
                worker.resting = "unreachable"
                worker.resting_until_ms = self.now + ms(self.settings["worker_ttl"])
        for worker in self.workers.values():
            if worker.resting and worker.resting_until_ms <= self.now:
                doc = left_some and self.look_at_worker(worker.id)
                if not doc or doc["state"] != worker.resting:
                    worker.resting = None
        again = True
        while again:
            again = False
            for job in list(self.jobs.values()):
                if self.may_be_due(job) and not (left_some and not self.moved(job)):
                    again = self.do_due(job) or again

    def may_be_due(self, job):
        return self.is_due(job)

    def do_due(self, job):
        """Whether something was done."""
        if self.has_expired(job):
            if job.status == "blocked":  # the same sweep may have freed it before
                job.ready_ms = (self.look(job.id) or {}).get("ready_ms", job.ready_ms)
            self.expired += 1
            self.fail_unstarted(job, "expired")
        elif job.status == "running":
            if self.excuse(job):
                return True
            self.fail(job, "lapse", "timeout", message=SOME_TEXT)
        else:
            self.requeue(job)
        return True

    def moved(self, job):
        doc = self.look(job.id)
        return doc is None or (doc["status"], doc["attempt"], doc.get("due_ms")) != (
            job.status, job.attempt, job.due_ms)  # fmt: skip

    def check_next(self, next_ms, due_before, limit=SWEEP, also=(), given=0):
        """next_ms never is later than a moment that could make a job ready, and 0 only with a reason."""
        limit = min(limit, DEAR)
        moments = [*also, *self.more_moments()]
        for job in self.jobs.values():
            if job.due_ms is not None:
                moments.append(self.handed_on_ms(job) if job.status == "running" else job.due_ms)
            if job.attempt == 0 and job.expires_ms is not None and job.status in WAITING:
                moments.append(job.expires_ms)
        for worker in self.workers.values():
            if self.held(worker):
                moments.append(worker.seen_ms + ms(self.settings["worker_ttl"]))
        wait = max(0, min(moments) - self.now) if moments else None
        expect(isinstance(next_ms, int) and next_ms >= -1, "next_ms", next_ms)
        if moments:
            expect(0 <= next_ms <= wait, "next_ms is later than something that gets due", next_ms, wait)
        # Who was given many does not know whether there are more.
        if next_ms == 0 and wait != 0 and given < DEAR and not self.may_have_left_work():
            expect(due_before >= limit, "next_ms 0, but nothing is left to do at once", due_before, wait)

    def more_moments(self):
        """Those at which something besides jobs gets due."""
        return []

    def may_have_left_work(self):
        """Whether there is a reason, other than what is due, to say next_ms 0."""
        return False

    def due_count(self):
        """An upper bound of the steps that are due; to look in vain at a queue's timers counts as well."""
        jobs = self.jobs.values()
        old = sum(j.may_be_gone or (j.result is not None and not self.has_result(j)) for j in jobs)
        looks = 3 * len(self.queues) + 2
        return looks + 2 * old + sum(2 for j in jobs if self.is_due(j)) + 2 * len(self.dead_workers())

    # ---- documents ----

    def document(self, job):
        doc = {k: getattr(job, k) for k in (
            "id", "name", "queue", "status", "priority", "attempt", "retry_count", "max_retry", "timeout",
            "keep_result", "created_ms", "argument", "worker_id", "started_ms", "due_ms", "ended_ms",
            "expires_ms", "finished_at", "reason", "message", "error", "tags", "unique", "unique_for",
            "max_runtime", "ready_ms", "schedule", "schedule_ms", "progress", "progress_message", "group",
            "depends", "if_failed", "headers")}  # fmt: skip
        doc["track"] = job.track or None
        doc["waits_for"] = sorted(job.waits_for) if job.status == "blocked" else None
        doc["result"] = job.result if self.has_result(job) else None
        doc.update(job.retry)
        return {k: v for k, v in doc.items() if v is not None}

    def check_document(self, shown, expected, what):
        """`if_failed` may be left out where it is the default; the order of ids is not said."""

        def plain(doc):
            doc = {k: sorted(v) if k in ("depends", "waits_for") else v for k, v in doc.items()}
            return {k: v for k, v in doc.items() if (k, v) not in (("if_failed", "wait"), ("track", False))}

        same(plain(shown), plain(expected), what)

    def picked_document(self, job):
        keys = ("id", "token", "name", "queue", "priority", "attempt", "retry_count", "timeout")
        doc = {k: getattr(job, k) for k in keys}
        more = {k: getattr(job, k) for k in ("depends", "schedule", "schedule_ms", "max_runtime", "headers")}
        return doc | {k: v for k, v in more.items() if v is not None}

    def created(self, id):
        """Now; but ids stay in order when the clock went back, or another server took over, and the moment is part of
        the id."""
        number = int(id, 16)
        expect(number >= self.least_id, "an id that was given before, or may have been", id)
        self.least_id = number + 1
        if self.is_taken_over:  # found out no later than now
            self.latest_id_ms = max(self.latest_id_ms, self.now) + (2 << 16)
            self.is_taken_over = False
        if self.now >= self.latest_id_ms:
            return self.now
        created = number >> 10  # of a job that is gone by the end of the call nothing else tells
        expect(self.now <= created <= self.latest_id_ms, "created_ms", created, self.now, self.latest_id_ms)
        return created

    def waiting(self, queue):
        return sum(j.queue == queue and j.status in WAITING for j in self.jobs.values())

    def is_open(self, job, queues):
        """Whether the job waits in one of these queues, and it is not paused."""
        named = any(matches(entry, job.queue) for entry in entries(queues))
        return named and not self.queues[job.queue]["paused"]

    def give_tokens(self, started):
        """Notes the tokens of jobs, each with its document, that one call started."""
        for job, doc in started:
            token = doc.get("token", "")
            expect(re.fullmatch(f"{job.attempt}-[0-9a-f]{{12}}", token), "no token", doc)
            job.token = self.tokens[job.id, job.attempt] = token
        digits = {job.token.partition("-")[2] for job, _ in started}
        expect(len(digits) <= 1, "tokens of one call", digits)

    def holds(self, id, token):
        job = self.jobs.get(id)
        return job if job and job.status == "running" and job.token == token else None

    def attempt_of(self, job, token):
        """Which attempt of a job a token is of, 0 for none: of one before the last the number is enough."""
        number = int(token.partition("-")[0])
        return 0 if number == job.attempt and token != job.token else number
