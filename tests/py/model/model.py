"""The reference model: what docs/protocol.md says, in lists and loops. This file holds operations on jobs and
queues, model_jobs.py what happens to jobs and what the clock does. The others are parts of one model, each on
top of the one before: model_trace, _statistics, _constraints, _order, _workers, _sleepers, _documents,
_unique, _dependencies, _following, _finding, _schedules, _access.

Every operation gets the engine's reply, says whether a user who had read the protocol would accept it, and
then does the same to its own jobs. Where the protocol leaves a choice to the engine (ids, jitter, the turn of
`round_robin`, when an old record goes) the model checks that the choice is one of those allowed, and follows.
A decision about what the page leaves open is written into the page, and then followed here.
"""

import re

from model_access import Access
from model_jobs import DEFAULTS, ENDED, STATES, ErrorReply, Mismatch, Refused, accepted, expect, ms, same

__all__ = ["ErrorReply", "Mismatch", "Model", "Refused", "expect"]


def in_path(name):
    """As a name stands in the path of an error: what would end the path is shown as `?`, bytewise."""
    return re.sub(rb"[^\x21-\x7e]|:", b"?", name.encode()).decode()


class Model(Access):
    # ---- section 4 ----

    def pick(self, reply, worker, queues, count=1, order="priority", request=None, wait=None):
        self.known_worker(worker)
        accepted(reply)
        self.sign_of_life(worker)
        until_ms, answer = self.requests.get(("pick", request), (0, []))
        if answer and (self.now < until_ms or self.is_repeat(reply, answer)):
            return self.picked_again(reply, answer)
        self.gets_up(worker, wait)
        self.come_by()
        due_before = self.due_count()
        self.sweep(left_some=reply[0] == 0)
        taken = [self.jobs.get(doc["id"]) for doc, _ in reply[1:]]
        expect(None not in taken and len(taken) <= count, "unknown jobs, or more than asked for", reply)
        if self.is_quiet(worker):
            return same(reply[1:], [], "jobs for a worker that is to be quiet")
        following = self.follow(taken, queues, order, worker)
        started = []
        for job, (doc, argument) in zip(following, reply[1:], strict=True):
            started.append((job, doc))
            self.give_tokens(started)
            self.check_document(doc, self.picked_document(job), "document of a picked job")
            same(argument, job.argument, "argument of a picked job")
        openings = []
        if len(taken) < count:
            self.check_nothing_left(reply[0], queues, due_before)
            openings = self.openings(queues)
        self.check_next(reply[0], due_before, also=openings, given=len(reply) - 1)
        if wait and not taken and reply[0] != 0:
            self.goes_to_sleep(worker, wait, queues, reply[0])
        if request:
            self.remember("pick", request, [(job.id, job.token) for job in taken])

    def picked_again(self, reply, answer):
        self.show_again(reply, self.started_again(answer))

    def show_again(self, reply, jobs):
        same([argument for _, argument in reply[1:]], [job.argument for job in jobs], "repeated pick")
        for job, (doc, _) in zip(jobs, reply[1:], strict=True):
            self.check_document(doc, self.picked_document(job), "repeated pick")
        same(reply[0], 0, "next_ms of a repeated pick")

    def started_again(self, answer):
        """Of a request that is repeated, the jobs that still run. Nobody had them: their leases begin anew, and what
        lapsed has spent no retry."""
        running = []
        for id, token in answer:
            job = self.jobs.get(id)
            if self.holds(id, token):
                job.due_ms = self.lease_end(job) if self.lease_end(job) > self.now else job.due_ms
                running.append(job)
            elif job and job.status not in ENDED and job.last[:2] == (int(token.partition("-")[0]), "lapse"):
                job.retry_count = max(0, job.retry_count - 1)
                if job.status == "retrying":
                    self.requeue(job)
                job.last = (job.last[0], "release", job.status)
        return running

    def remember(self, operation, token, answer):
        self.requests[operation, token] = (self.now + ms(self.settings["request_ttl"]), answer)

    def is_repeat(self, reply, answer):
        """Whether an old token was still known: a pick that starts jobs would start none that run."""
        held = {(id, token) for id, token in answer if self.holds(id, token)}
        return bool(held) and held == {(doc["id"], doc["token"]) for doc, _ in reply[1:]}

    def cancelled_at(self, job, token):
        return bool(job) and job.last == (self.attempt_of(job, token), "cancel", "cancelled")

    def over(self, id, token, kind, answer):
        """The answer for an attempt that does not run: what it was told before, or why it is gone."""
        job = self.present(id, answer == "NOTFOUND")
        if not job:
            return "NOTFOUND"
        attempt = self.attempt_of(job, token)
        if kind == "release" and job.last[:2] == (attempt, "kick") and answer != "LOST":
            kind = "kick"  # to be given back twice is as good as to be told so
        if job.last and job.last[:2] == (attempt, kind):
            if kind in ("release", "kick"):  # where it waits now
                return "scheduled" if job.status == "scheduled" else "queued"
            if kind == "success" and job.last[2] != "done" and answer in ("queued", "scheduled"):
                return answer  # it was moved: where it waits now, or waited then
            if kind == "failure" and answer == "retrying" and job.status != "error":
                return answer  # it was made to run again
            return job.last[2]
        return "CANCELLED" if self.cancelled_at(job, token) else "LOST"

    def release(self, reply, worker, jobs, delay=0, hold=None, message=""):
        unknown = ["hold." + in_path(id) for id in hold or {} if id not in self.constraints]
        if unknown:
            named = isinstance(reply, ErrorReply) and reply.path in unknown
            raise Refused("NOTFOUND", reply.path if named else unknown[0])
        accepted(reply)
        for (id, token), answer in zip(jobs, reply, strict=True):
            job = self.holds(id, token)
            if job:
                self.close_keys_of(job, hold or {})
                self.requeue(job, self.now + ms(delay), "release")
                self.note_message(job, message)
                same(answer, job.status, "release")
            else:
                same(answer, self.over(id, token, "release", answer), "release")

    def result(self, reply, id):
        job = self.present(id, isinstance(reply, ErrorReply) and reply.code == "NOTFOUND")
        if not job:
            raise Refused("NOTFOUND", "id")
        accepted(reply)
        if not self.has_result(job):
            return same(reply, [job.status], "result")
        same(reply, [job.status, job.result], "result")
        grace = self.setting(job.queue, "result_grace")
        if not job.result_read or not grace:
            job.result_read = True
            job.result_until_ms = self.now + ms(grace)

    def get(self, reply, ids):
        accepted(reply)
        for id, doc in zip(ids, reply, strict=True):
            job = self.present(id, doc is None)
            if not job or not doc:
                same(doc, job, "get")
            else:
                self.check_document(doc, self.document(job), "get")

    def watch(self, reply, ids):
        accepted(reply)
        for id, state in zip(ids, reply, strict=True):
            job = self.present(id, state is None)
            same(state, job and job.status, "watch")
            if job and job.status not in ENDED:
                self.watched.add(id)

    def tick(self, reply, limit=100):
        accepted(reply)
        self.come_by()
        due_before = self.due_count()
        self.sweep(left_some=reply[0] == 0)
        expect(0 <= reply[1] <= limit, "moved more than the limit", reply)
        self.check_next(reply[0], due_before, limit=limit)

    # ---- section 6 and 8 ----

    def queue(self, reply, name, paused=None, max_waiting=None, fair=None, set=None, unset=()):
        accepted(reply)
        record = self.queues.setdefault(name, {"paused": False, "max_waiting": 0})
        if paused is not None:
            record["paused"] = paused
        if max_waiting is not None:
            record["max_waiting"] = max_waiting
        if fair is not None:
            self.set_fair(name, fair)
        own = self.own_settings.setdefault(name, {})
        own.update(set or {})
        for setting in unset:
            own.pop(setting, None)
        self.check_queue(reply, name)

    def check_queue(self, doc, name):
        same(doc.pop("settings", {}), self.own_settings.get(name, {}), "settings of a queue")
        same(doc.pop("fair", []), self.levels_of(name), "levels of a fair queue")
        counts = {k: v for k, v in doc.items() if k not in ("name", "paused", "max_waiting")}
        same({k: v for k, v in doc.items() if k not in counts}, {"name": name, **self.queues[name]}, "queue")
        for state in STATES:
            jobs = [j for j in self.jobs.values() if (j.queue, j.status) == (name, state)]
            least = sum(not j.may_be_gone for j in jobs)
            expect(least <= counts.pop(state, -1) <= len(jobs), f"count of {state}", doc, least, len(jobs))
        same(counts, {}, "unknown fields of a queue")

    def list_queues(self, reply, names=None, count=None):
        """Without names: all the pages, one after the other."""
        accepted(reply)
        known = sorted(self.queues, key=str.encode)
        wanted = known if names is None else [n for n in names if n in self.queues]
        same([doc["name"] for doc in reply], wanted, "names of queues")
        for doc in reply:
            self.check_queue(doc, doc["name"])

    def config(self, reply, set=None, describe=False):
        accepted(reply)
        if describe:
            shown = {setting["name"]: (setting["value"], setting["default"]) for setting in reply}
            return same(shown, {k: (v, DEFAULTS[k]) for k, v in self.settings.items()}, "settings described")
        self.settings.update(set or {})
        same(reply, self.settings, "settings")

    # ---- not operations: what must hold besides ----

    def advance(self, delta_ms):
        self.move_clock(delta_ms)
        self.latest = max(self.latest, self.now)
        self.latest_id_ms = max(self.latest_id_ms, self.now)
        if delta_ms < 0:  # what seemed over may be, or not: what the engine has dropped is gone
            self.lose_track_of_sleepers()
            self.forget_keys(self.now - delta_ms)
            for job in list(self.jobs.values()):
                doc = self.look(job.id)
                if job.may_be_gone and doc is None:
                    del self.jobs[job.id]
                elif doc and self.has_result(job) and "result" not in doc:
                    job.result = None

    def take_over(self):
        """Another server does, which knows nothing of the last ids that were given."""
        if not self.is_taken_over:  # who gave no ids in between is not noticed
            self.least_id = max(self.least_id, self.now << 10) + (1 << 26)
            self.is_taken_over = True

    def settled(self, old):
        """Time enough has passed for the records `old`, and everything due is done."""
        beyond = self.beyond_limits()
        for job in list(self.jobs.values()):
            expect(not self.is_due(job), "was due and not done", job, self.now)
            doc = self.look(job.id)
            if doc is None and job.may_be_gone:
                del self.jobs[job.id]
            elif job not in beyond:
                job.may_be_gone = False
            else:
                expect(doc is None or job.id not in old, "a record is kept beyond its limit", doc, self.now)
        expect(not self.dead_workers(), "a dead worker is still there", self.dead_workers())
