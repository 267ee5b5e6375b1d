"""Which job waits for which: docs/dependencies.md.

Records of ended jobs go when the engine gets there, and of a job whose record is gone it is only known that
it ended. So there may be several things that the engine may do with a blocked job; then the model follows.
"""

from model.common import ENDED, ErrorReply, expect, refuse, same
from model.needs import OVER, SAYS
from model.part import Part

MOST = 10_100  # dependencies of a job
PASSES = {"go", "need"}
NEVER = "f"  # no id begins with it before the year 2500


class Links(Part):
    def __init__(self, model):
        super().__init__(model)
        self.ended_as = {}  # id -> state, also when the record is gone
        self.ended = set()  # ids of all that ever did
        self.ran_again = {}  # those that ended and were retried since the last sweep, with the state they had
        self.dooming = set()  # ids whose dependents the next sweeps cancel

    def transition(self, job, was, event=None):
        if job.status in ENDED:
            self.ended_as[job.id] = job.status
            self.ended.add(job.id)
            job.waits_for = set()
            self.needs_no_results(job, job.depends or ())
            if job.is_doomed is not False:  # one that ends before its turn comes takes nobody along
                self.doom_dependents(job, None)
        elif was in ENDED:
            self.ran_again[job.id] = self.ended_as.pop(job.id, None)
            job.is_doomed = False
            self.needs_results(job, job.depends or ())

    # ---- whose results stay ----

    def needs_results(self, job, ids):
        """A job that has not ended depends on these: what results they have, or come to have, stay."""
        for other in filter(None, map(self.jobs.get, ids)):
            if other.keep_result and (other.status != "done" or self.life.has_result(other)):
                other.readers.add(job.id)

    def needs_no_results(self, job, ids):
        """It ended, or does not depend on them any more: a result whose time was over goes with the last one."""
        for other in filter(None, map(self.jobs.get, ids)):
            self.reader_left(other, job.id)

    def reader_left(self, other, reader):
        was_last = other.readers == {reader}
        other.readers.discard(reader)
        if was_last and other.result is not None:
            other.result_until_ms = max(other.result_until_ms, self.now)

    # ---- what waits for what ----

    def is_unknown(self, id, reply, path):
        """Whether an id was never given. An id from before may be taken for one whose job is gone."""
        refused = isinstance(reply, ErrorReply) and reply[:2] == ("NOTFOUND", path)
        return id >= NEVER or (refused and id not in self.jobs and id not in self.ended_as)

    def unknown_dependencies(self, reply, jobs, path):
        for i, (spec, _) in enumerate(jobs):
            for j, dependency in enumerate(spec.get("depends") or ()):
                at = f"{path.format(i)}.depends[{j}]"
                if isinstance(dependency, str) and self.is_unknown(dependency, reply, at):
                    yield "NOTFOUND", at

    def says_of(self, job, state):
        """What it may still mean that a job had ended in this state, which was made to run again."""
        if state in OVER:
            return {"go"}
        return set() if state is None else {SAYS[job.if_failed]} - {"wait"}

    def says(self, job, id):
        """What a dependency may mean for who waits for it: `wait`, `go`, `fail`, or `need`: it goes on, and runs."""
        other = self.jobs.get(id)
        if other and other.status not in ENDED:
            return {"wait"} | self.says_of(job, self.ran_again.get(id))
        state = other.status if other else self.ended_as.get(id, "done")
        told = SAYS[job.if_failed]
        if state in OVER or job.if_failed == "run":
            return {"go"}
        return {told} if other and not other.may_be_gone else {told, "go"}

    def is_going(self, id):
        """Whether a job may be cancelled with the tree it is in: it is before those that wait for it."""
        job = self.jobs.get(id)
        if not job or job.status != "blocked":
            return False
        if job.is_doomed is False and not any(map(self.is_going, job.waits_for)):
            return False
        return (self.engine.look(id) or {}).get("status") != "blocked"

    def may_do(self, job):
        """What may become of a blocked job at a sweep: `cancel`, `fail`, `go`, `wait`."""
        said = [self.says(job, id) for id in job.waits_for]
        may = {"cancel"} if job.is_doomed is not False else set()
        if job.is_doomed:  # another that failed may have come first
            others = [self.says(job, id) for id in job.waits_for if id not in self.dooming]
            return may | ({"fail"} if any("fail" in some for some in others) else set())
        if any("fail" in some for some in said):  # or a cancelled tree comes first
            may |= {"fail", "cancel"} if any(map(self.is_going, job.waits_for)) else {"fail"}
        if {"fail"} in said:
            return may
        may |= {"wait"} if any("wait" in some for some in said) else set()
        return may if {"wait"} in said else may | {"go"}

    def wait_for(self, job, ids, start_ms, event="enqueued"):
        """A job that is enqueued, or gets new dependencies, and waits for those that are not over."""
        was, due_ms = job.status, job.due_ms
        job.waits_for = {id for id in ids if self.says(job, id) != {"go"}}
        job.may_start_ms = start_ms if start_ms > self.now or was in ("scheduled", "blocked") else 0
        if not was:
            job.ready_ms = start_ms if start_ms > self.now else None
        elif was == "queued":
            ready_ms, job.ready_ms = job.ready_ms, None
        job.status, job.due_ms = "blocked", None
        if job.waits_for & self.dooming:
            job.is_doomed = job.is_doomed or None  # what is sure already stays so
        may = self.may_do(job) - {"cancel"}
        if not event or may != {"wait"} or any(PASSES & self.says(job, id) for id in job.waits_for):
            doc = self.engine.look(job.id)
            # That it fails, or is needed, is for a sweep, perhaps of this very call, when all else of it is done. And
            # what it must wait for may end later in this call.
            shown = "wait" if not doc or doc["status"] in ("blocked", "error") or may == {"wait"} else "go"
            later = {"wait"} if "fail" in may or not event else set()
            if job.if_failed == "only" and not (was == "blocked" and doc and doc["status"] == was):
                later, shown = {"wait"}, self.needs.comes_to(job, was, doc)
            expect(shown in may | later, "depends", job, doc, may)
            if shown == "go":
                if job.if_failed == "only" and was in (None, "blocked"):
                    return self.needs.skip_at_once(job, was, event)
                job.status, job.due_ms, job.waits_for = was, due_ms, set()
                if was == "queued":
                    job.ready_ms = ready_ms
                if was in ("queued", "scheduled"):
                    return None
                return self.life.requeue(job, start_ms, event=event)
            sure = {id for id in ids if self.says(job, id) == {"wait"}}
            # What has not ended yet may end later in this call, of which the document tells already.
            open_now = {id for id in sure & self.jobs.keys() if self.jobs[id].status not in ENDED}
            waits_for = set((doc or {}).get("waits_for") or job.waits_for) | open_now
            expect(sure <= waits_for <= set(ids), "waits_for", job, doc)
            over, job.waits_for = job.waits_for - waits_for, waits_for  # or it is over, and a sweep takes it out
            self.needs.note(job, [self.says(job, id) for id in over])
        if was != "blocked":
            self.model.transition(job, was, event)

    # ---- what a sweep does with a blocked job ----

    def is_due(self, job):
        return "wait" not in self.may_do(job)

    def may_be_due(self, job):
        if job.is_doomed is None and any(map(self.is_to_come, job.waits_for)):
            return False  # what becomes of that one tells what may become of this one
        return self.may_do(job) != {"wait"} or self.clock.is_due(job)

    def is_to_come(self, id):
        """Whether the engine did something with a job in this sweep that is still to be followed."""
        job = self.jobs.get(id)
        if not job or not self.clock.moved(job):
            return False
        return self.clock.may_be_due(job) or (job.status == "blocked" and any(map(self.is_to_come, job.waits_for)))

    def do_due(self, job):
        does = self.what_engine_did(job)
        if does == "expire":
            self.needs.note_expired(job)
            self.clock.expire(job)
        elif does == "cancel":
            self.cancel_tree(job)
        elif does == "fail":
            self.life.fail_unstarted(job, "dependency")
        elif does == "go":
            self.unblock(job)
        return does != "wait"

    def cancel_tree(self, job):
        self.life.end(job, "cancelled", None)
        self.doom_dependents(job)

    def what_engine_did(self, job):
        """Of a job that has expired, what came first: it may be free before, in the same sweep."""
        may = self.may_do(job)
        if self.clock.has_expired(job):
            may = (may - {"wait"}) | {"expire"}
            may |= {"cancel"} if any(map(self.is_going, job.waits_for)) else set()
        if len(may) == 1:
            return next(iter(may))
        doc = self.engine.look(job.id) or self.webhooks.end_to_come(job.id)
        states = self.trace.states_to_come(job.id, "blocked") or ([doc["status"]] if doc else [])
        if not states:  # the record is gone at once
            if "go" in may and self.needs.may_skip(job) and not self.is_skipped_kept(job.queue):
                # A sweep does that before it ends what has expired, unless it knew that the job is needed.
                return "expire" if "expire" in may and self.statistics.is_behind(job, "error") else "go"
            ends = {"cancel": "cancelled", "fail": "error", "expire": "error"}  # as they come in a sweep
            # One that came to depend on what is cancelled with all may have come too late for that.
            likely = sorted(may & set(ends), key=["fail", "expire", "cancel"].index) if job.is_doomed is None else ends
            may_be_gone = [
                does for does in likely
                if does in may and self.queues.most_kept(job.queue, ends[does]) <= len(self.ended)
            ]  # fmt: skip
            return [*may_be_gone, "go"][0]
        did = {"blocked": "wait", "error": "fail", "cancelled": "cancel"}.get(states[0], "go")
        if did == "fail" and (doc["reason"] == "expired" if doc else "fail" not in may):
            did = "expire"
        expect(did in may, "what became of a blocked job", job, doc, states, may)
        return did

    def is_skipped_kept(self, queue):
        """Whether the record of a job that is skipped in this sweep is there after it, for all that may be skipped."""
        skipped = sum(state == "skipped" for state in self.ended_as.values())
        coming = sum(job.status == "blocked" and job.if_failed == "only" for job in self.jobs.values())
        return self.queues.most_kept(queue, "skipped") >= skipped + coming

    def unblock(self, job):
        doc = self.engine.look(job.id) or {}
        if job.if_failed == "only" and self.needs.skips(job, doc):
            return None
        job.ready_ms = doc.get("ready_ms")
        least, most = min(job.created_ms, self.now), max(self.now, job.may_start_ms)
        expect(job.ready_ms is None or least <= job.ready_ms <= most, "ready_ms", job, doc)
        job.waits_for = set()
        self.life.requeue(job, job.may_start_ms)

    def swept(self, left_some):
        if not left_some:
            self.dooming.clear()
        for job in self.jobs.values():
            if job.status == "blocked":
                if not left_some:
                    job.is_doomed = False
                said = {id: self.says(job, id) for id in job.waits_for}
                over = {id for id in job.waits_for if said[id] <= PASSES}
                unsure = {id for id in job.waits_for if said[id] & PASSES}
                if (over and left_some) or unsure > over:
                    shown = set((self.engine.look(job.id) or {}).get("waits_for", ()))
                    least = job.waits_for - unsure if left_some else job.waits_for - over - unsure
                    expect(least <= shown <= job.waits_for, "waits_for", job, shown)
                    job.waits_for = shown
                else:
                    job.waits_for -= over
                self.needs.note(job, [said[id] for id in said.keys() - job.waits_for])
        if not left_some:
            self.ran_again.clear()

    def moments(self):
        is_due = any(job.status == "blocked" and self.is_due(job) for job in self.jobs.values())
        return [self.now] if is_due else []

    def due_count(self):
        """Those that wait for a job that ended are looked at, also if they go on waiting; then perhaps those
        that wait for them."""
        waits = [id for job in self.jobs.values() if job.status == "blocked" for id in job.waits_for]
        return 2 * len(waits) if any(id in self.ended for id in waits) else 0

    def dependents(self, id):
        return [j for j in self.jobs.values() if j.status == "blocked" and id in j.waits_for]

    def doom_dependents(self, job, is_doomed=True):
        self.doom(job.id, self.dependents(job.id), is_doomed)

    def doom(self, id, dependents, is_doomed=True):
        self.dooming.add(id)
        for dependent in dependents:
            dependent.is_doomed = dependent.is_doomed or is_doomed

    # ---- operations ----

    def leads_to(self, id, target):
        """Whether a job waits for the target, itself or through others."""
        return target in self.waits_for_all(id)

    def waits_for_all(self, id):
        """The job, and all that it waits for, itself or through others."""
        seen, open = set(), [id]
        while open:
            seen.add(at := open.pop())
            if at in self.jobs and self.jobs[at].status == "blocked":
                open += self.jobs[at].waits_for - seen
        return seen

    def cancel_one(self, job, answer, force=False):
        if job.status == "running" and not (force or self.settings["cancel_running"]):
            return same(answer, "CONFLICT", "cancel")
        same(answer, job.status, "cancel")
        if job.status not in ENDED:
            was_running = job.status == "running"
            if was_running:
                self.trace.tell(job.worker_id, f"cancelled {job.id} {job.attempt}")
            self.life.end(job, "cancelled", "cancel" if was_running else None)
            return job

    def cancel_named(self, reply, ids, force=False, dependents="leave", atomic=False):
        sure, maybe = self.left_alone(ids, force) if atomic else ([], [])
        if dependents == "refuse":
            for found, more in zip((sure, maybe), self.waited_for(ids), strict=True):
                found += more
        if sure or (maybe and isinstance(reply, ErrorReply)):
            refuse(reply, *sure, *maybe)
        for id, answer in zip(ids, reply, strict=True):
            job = self.life.present(id, answer == "NOTFOUND")
            if not job:
                same(answer, "NOTFOUND", "cancel")
                continue
            had_ended = job.status in ENDED
            cancelled = self.cancel_one(job, answer, force)
            if dependents == "cancel" and (cancelled or had_ended):
                job.is_doomed = True if cancelled else None
                self.doom_dependents(job, job.is_doomed)

    def left_alone(self, ids, force):
        """Jobs that are not cancelled: certainly, and perhaps."""
        sure, maybe = [], []
        for i, id in enumerate(ids):
            job = self.jobs.get(id)
            if not job or job.may_be_gone:
                (maybe if job else sure).append(("NOTFOUND", f"ids[{i}]"))
            is_protected = job and job.status == "running" and not (force or self.settings["cancel_running"])
            if is_protected or (job and job.status in ("done", "error")):
                sure.append(("CONFLICT", f"ids[{i}]"))
        return sure, maybe

    def waited_for(self, ids):
        """Jobs that others wait for, which are not cancelled with them: certainly, and perhaps."""
        sure, maybe = [], []
        for i, id in enumerate(ids):
            blocked = [job for job in self.dependents(id) if job.id not in ids]
            ended = id not in self.jobs or self.jobs[id].status in ENDED
            if blocked:
                (maybe if ended else sure).append(("CONFLICT", f"ids[{i}]"))
        return sure, maybe
