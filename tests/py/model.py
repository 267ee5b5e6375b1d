"""The reference model: what docs/protocol.md says, in lists and loops. This file holds operations on jobs and
queues, model_jobs.py what happens to jobs and what the clock does. The others are parts of one model, each on
top of the one before: model_trace, _statistics, _constraints, _order, _workers, _sleepers, _documents,
_unique, _dependencies, _following, _finding, _schedules.

Every operation gets the engine's reply, says whether a user who had read the protocol would accept it, and
then does the same to its own jobs. Where the protocol leaves a choice to the engine (ids, jitter, the turn of
`round_robin`, when an old record goes) the model checks that the choice is one of those allowed, and follows.
"""

import re

from model_jobs import DEFAULTS, ENDED, STATES, ErrorReply, Mismatch, Refused, accepted, expect, ms, same
from model_schedules import Schedules

__all__ = ["ErrorReply", "Mismatch", "Model", "Refused", "expect"]

# AMBIGUITIES: what docs/protocol.md leaves open, and the reading taken here.
#  1 A request token of enqueue and one of pick have nothing to do with each other. That of pick is not
#    bound to the other arguments (no CONFLICT), and an answer without jobs is not remembered. A
#    repeated pick renews no lease and sweeps nothing, but is a sign of life.
#  2 The ttl of a token is that of the moment it was used. Later the token may be known or not.
#  3 pick (also within finish, which is then refused whole) of an id like a worker's that is not
#    registered: NOTFOUND.
#  4 A repeated outcome gets the same answer until the *next attempt has ended*, also while that runs.
#    An attempt whose lease ran out, or that was given back, gets LOST.
#  5 A repeated release tells where the job waits now: scheduled, or else queued.
#  6 CANCELLED is for the attempt that was cancelled while it ran; for a job cancelled while it waited:
#    LOST.
#  7 `error` shows the last failure's blob also after a later success, unless a result was kept.
#    `finished_at` is that of the last outcome, and absent when it had none. Failures of the engine's
#    own finding have some `message`.
#  8 The first read sets the end of the result to now + result_grace, even if result_ttl would have
#    ended it sooner. With result_grace 0 any read drops it, also when the setting changed since the
#    first.
#  9 created_ms is part of the id. When the clock went back it may be up to the latest moment there ever
#    was.
# 10 A record that is not kept at all goes when the call is over: the same outcome twice in one call
#    gets the same answer twice. Old records go by ended_ms, then id; those whose result is kept are not
#    counted.
# 11 Sign of life comes before the sweep: a dead worker that picks before anybody noticed is alive.
# 12 busy and unreachable end with a sweep. busy is not ended by a sign of life. unreachable and busy
#    show before full. A registered worker without url is always `pulling`, though refuse may be said of
#    it.
# 13 assign gives the best job that any worker with room takes to the least loaded (held / max_jobs) who
#    takes it. With next_ms 0 workers may be passed over whose queues are still being sorted.
# 14 cancel ends nothing else: a watched job's end is published however it ends, expiry included.
# 15 round_robin begins at any entry; shuffled: each job is the best of some entry.
# 16 retry delays are whole milliseconds; with a base of 0 the job is ready for the same sweep.
# 17 A change of match, by or order begins the record of a constraint anew as well: starts, keys closed by
#    hand, and who keeps a key in strict order. The same definition again changes nothing.
# 18 hold sets the moment, also to a sooner one.
# 19 A start counts with the cost it had when it began, no more than the limit of then.
# 20 In strict order `running` counts who keeps the key. Who keeps it has a place, whoever else runs.
# 21 Of several operators on tags, those that ask for a tag must all hold for the same one.
# 22 A fair queue begins anew when the paths of its levels change, and not when weights do; its clock goes on,
#    which tells in rounding only. The second level has a clock of its own below each value of the first.
# 23 A job that is moved on gives back the keys it kept in strict order. What becomes of a kept key when the
#    argument, priority or tags of the job change is not said (such sequences have no strict order).
# 24 Other facts about a job (change, replace, checkpoint, tags) count for constraints from when it waits.
# 25 What follows an outcome is enqueued when the job has ended: its unique key is free by then.
# 26 After the clock went back, a unique key, and a result, that was over by then may be kept again, or not.
# 27 A unique key that is kept (`unique_for`) is free when an old record goes, whenever the engine gets there.
#    Whether a record is kept at all is told by the settings of the moment at which the job ends.
# 28 An id in `depends` that was never given, but is less than those that were, may be taken for one whose
#    record is gone.
# 29 Of dependents that are to be cancelled and get another dependency before the sweep: either may come.
# 30 A kicked attempt that is given back (`release`) is answered LOST, or where the job waits.
# 31 `cancel` with `dependents: "cancel"` of a job that had ended before may cancel those that wait for it.
# 32 `ready_ms` of a job that was blocked is the moment of the sweep, or of the end of what it waited for.
#    A job that expires may be free before, in the same sweep.
# 33 A worker that is to be quiet is not counted on as a sleeper.
# 34 `lapsed` of a worker counts what it reported as `timeout` itself, too.
# 35 The moments of a schedule between a sweep and the next are those after the last one dealt with; `next`
#    begins with those still to be dealt with, or after now.
# 36 Whose end a history tells as forgotten, of that it does not tell the start either.


def in_path(name):
    """As a name stands in the path of an error: what would end the path is shown as `?`, bytewise."""
    return re.sub(rb"[^\x21-\x7e]|:", b"?", name.encode()).decode()


class Model(Schedules):
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
        jobs = [job for job in (self.holds(*held) for held in answer) if job]
        same([argument for _, argument in reply[1:]], [job.argument for job in jobs], "repeated pick")
        for job, (doc, _) in zip(jobs, reply[1:], strict=True):
            self.check_document(doc, self.picked_document(job), "repeated pick")
        same(reply[0], 0, "next_ms of a repeated pick")

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
        if delta_ms < 0:  # what seemed over may be, or not: what the engine has dropped is gone
            self.lose_track_of_sleepers()
            self.forget_keys(self.now - delta_ms)
            for job in list(self.jobs.values()):
                doc = self.look(job.id)
                if job.may_be_gone and doc is None:
                    del self.jobs[job.id]
                elif doc and self.has_result(job) and "result" not in doc:
                    job.result = None

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
