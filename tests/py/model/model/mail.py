"""Mail between partitions: section 22 of docs/protocol.md. Of a job elsewhere a partition knows what letters said.

What is to be told stands in an outbox, by partition and subject; what a letter says is so when it is given out.
"""

import math

import msgpack

from model.common import accepted, expect, same
from model.needs import SAYS
from model.part import Part

LEASE_MS, AGAIN_MS = 5000, 300_000  # when a letter is written again that nobody answered; and that was
ENDS = {"d": "done", "e": "error", "c": "cancelled", "a": "all_cancelled", "n": "lost"}
FOLLOW, ENQUEUE = "f", "j"


def read(letter):
    """Specs and arguments in it are bytes of any kind."""
    return msgpack.unpackb(letter, unicode_errors="surrogateescape")


def digits_of(id):
    """Of the partition that gave an id."""
    return id[14:] or "00"


class Mail(Part):
    operations = ("outbox", "deliver")

    def __init__(self, model):
        super().__init__(model)
        self.outbox_due = {}  # (digits of a partition, subject) -> when it is to be told
        self.entered = {}  # (job, one elsewhere) -> since when, in microseconds, that one is wanted
        self.known = {}  # job elsewhere -> its state, as its partition said last
        self.news = {}  # job elsewhere -> [how it ended, for whom, whether no sweep can have seen to it]
        self.followers = {}  # own job -> {digits: as of when its jobs depend on it}
        self.waiting = {}  # own job -> digits of partitions of which jobs wait for it
        self.asked = set()  # (digits, subject): a sweep may have asked whether a result is still wanted
        self.is_tree = False  # what is cancelled now takes its dependents along

    def is_elsewhere(self, id):
        return id[14:] != self.model.suffix

    def put(self, id, how, to=None):
        self.outbox_due[to or digits_of(id), how + id] = 0

    # ---- what the partition's own jobs want ----

    def enter(self, job, ids):
        for id in filter(self.is_elsewhere, ids):
            self.entered[job.id, id] = self.model.now * 1000
            self.put(id, FOLLOW)

    def leave(self, job, ids):
        for id in filter(self.is_elsewhere, ids):
            if self.entered.pop((job.id, id), None) is not None and not self.is_wanted(id):
                self.put(id, FOLLOW)

    def is_wanted(self, id):
        return any(other == id for _, other in self.entered)

    def says(self, job, id):
        """What it means for a job that waits: `wait`, `go` or `fail`. A failure counts for those whom it was for."""
        outs = set()
        for how, seen, is_new in self.news.get(id, ()):
            if how == "done":
                outs.add("go")
            elif how == "all_cancelled" or self.entered.get((job.id, id), 0) > seen:
                continue
            else:
                outs.add(SAYS[job.if_failed])
            outs |= set() if is_new else {"wait"}
        return outs or {"wait"}

    def swept(self, left_some):
        self.ask_readers()
        if left_some:
            self.news = {id: [(how, seen, False) for how, seen, _ in told] for id, told in self.news.items()}
        else:
            self.news.clear()

    def elsewhere(self, job):
        """What `explain` tells of those that a job waits for."""
        others = sorted(filter(self.is_elsewhere, job.waits_for))
        told = [{"id": id, "partition": int(digits_of(id), 16), "status": self.known.get(id)} for id in others]
        return [{name: value for name, value in one.items() if value is not None} for one in told]

    # ---- who follows the partition's own jobs ----

    def note_end(self, job):
        for to in list(self.waiting.get(job.id, ())):
            self.put(job.id, "a" if job.status == "cancelled" and self.is_tree else job.status[0], to)
            if job.status == "done":
                self.waiting[job.id].discard(to)

    def waiting_in(self, id):
        return sorted(int(digits, 16) for digits in self.waiting.get(id, ()))

    def leave_one(self, id, digits):
        self.followers.get(id, {}).pop(digits, None)
        if job := self.model.jobs.get(id):
            self.model.links.reader_left(job, "!" + digits)

    def ask_readers(self):
        """The time of a result is over that other partitions wanted."""
        for id, some in self.followers.items():
            job = self.model.jobs.get(id)
            if job and job.result is not None and job.result_until_ms <= self.model.latest:
                self.asked |= {(to, "d" + id) for to in some}

    # ---- outbox ----

    def outbox(self, reply, courier, count=100, wait=None, letters=(), **more):
        accepted(reply)
        for letter, answer in letters:
            self.answered(read(letter), answer)
        left_out = {f"{number:02x}" for number in more.get("except", ())}
        next_ms, *found = reply
        due = {}
        for to, subject in self.outbox_due:
            if to not in left_out and self.outbox_due[to, subject] <= self.model.now:
                due.setdefault(to, set()).add(subject)
        share = math.ceil(count / max(len(due), 1))
        for number, letter in zip(found[::2], found[1::2], strict=True):
            to, letter = f"{number:02x}", read(letter)
            if letter["kind"] == "enqueue":
                self.model.onward.recognize(to, letter, due)
            self.check_letter(to, dict(letter), due)
            due.get(to, set()).discard(letter["subject"])
        counts = {to: found[::2].count(int(to, 16)) for to in due}
        for to, subjects in due.items():
            for subject in subjects if counts[to] + len(subjects) <= share else ():
                expect(None in self.allowed(to, subject), "a letter that is due", to, subject)
                del self.outbox_due[to, subject]
        moments = [at_ms for (to, _), at_ms in self.outbox_due.items() if to not in left_out]
        if not self.asked and not any(due.values()):
            same(next_ms, max(0, min(moments) - self.model.now) if moments else -1, "outbox: next_ms")

    def check_letter(self, to, letter, due):
        subject, until_ms = letter.pop("subject"), letter.pop("until_ms")
        is_due = subject in due.get(to, ()) or (to, subject) in self.asked
        expect(is_due, "a letter that was not due", to, subject)
        self.asked.discard((to, subject))
        same(until_ms, self.model.now + LEASE_MS, "until_ms of a letter")
        whose = {"format": 1, "system": "model", "from": self.model.suffix or "00", "to": to}
        same({field: letter.pop(field, None) for field in whose}, whose, "whose letter it is")
        if subject[0] == ENQUEUE:
            self.model.onward.check_letter(to, subject, letter)
        else:
            allowed = self.allowed(to, subject)
            expect(letter in allowed, "what a letter says", subject, letter, allowed)
        self.outbox_due[to, subject] = until_ms

    def allowed(self, to, subject):
        """What a letter may say; None for no letter."""
        how, id = subject[0], subject[1:]
        if how == ENQUEUE:
            return []
        if how == FOLLOW:
            waits = bool(self.model.links.dependents(id))
            if self.is_wanted(id):
                at = max([self.model.now * 1000, *(at for (_, other), at in self.entered.items() if other == id)])
                return [{"kind": "follow", "id": id, "at": at, "waits": waits, "known": id in self.known}]
            return [None] if waits else [{"kind": "leave", "id": id, "at": self.model.now * 1000}]
        seen, job = self.followers.get(id, {}).get(to), self.model.jobs.get(id)
        if seen is None:
            return [None]
        told = {"kind": "ended", "id": id, "how": ENDS[how], "seen": seen, "kept": False}
        has_result = job is not None and job.result is not None
        is_kept = has_result and self.model.life.has_result(job)
        if how in "ec":
            found = [told] if not job or job.may_be_gone else []
            if job and job.status in ("done", "error", "cancelled") and not is_kept:
                found.append({**told, "how": job.status})
            return found + ([None] if not job or has_result or job.status not in ("error", "cancelled") else [])
        kept = [True] if is_kept else [True, False] if has_result else [False]
        return [{**told, "kept": one} for one in kept]

    def answered(self, letter, answer):
        to, subject, id = letter["to"], letter["subject"], letter["id"]
        is_current = self.outbox_due.get((to, subject)) == letter["until_ms"]
        if not is_current or (letter["kind"] == "leave" and self.is_wanted(id)):
            return
        if answer[0].isupper():
            self.outbox_due[to, subject] = self.model.now + 60_000
        elif letter["kind"] == "follow" and self.model.links.dependents(id):
            self.outbox_due[to, subject] = self.model.now + AGAIN_MS
            if (state := answer.split(" ")[0]) != "gone":
                self.known[id] = state
        else:
            del self.outbox_due[to, subject]
            if letter["kind"] == "enqueue":
                self.model.onward.answered(to, subject, answer)
            if letter["kind"] == "leave":
                self.known.pop(id, None)
            is_over = letter.get("how") == "lost" or (letter.get("how") == "done" and not letter["kept"])
            if is_over and self.followers.get(id, {}).get(to, letter["seen"]) <= letter["seen"]:
                self.leave_one(id, to)

    # ---- deliver ----

    def deliver(self, reply, letters):
        accepted(reply)
        self.model.clock.come_by()
        for letter, answer in zip(letters, reply, strict=True):
            letter = read(letter)
            if letter["kind"] == "enqueue":
                self.model.onward.arrive(letter, answer)
            elif letter["kind"] == "follow":
                self.follow(letter, *answer.split(" "))
            else:
                same(answer, "ok", "answer to a letter")
                self.left(letter) if letter["kind"] == "leave" else self.ended(letter)
        self.model.clock.sweep(left_some=self.model.clock.may_leave_some())

    def follow(self, letter, state, _):
        id, to = letter["id"], letter["from"]
        job = self.model.life.present(id, state == "gone")
        same(state, job.status if job else "gone", "answer to a letter")
        if job and job.result is not None and not self.model.life.has_result(job):
            if "result" not in (self.model.look(id) or {}):  # over just then, it may have been gone
                job.result = None
        self.followers.setdefault(id, {})[to] = max(letter["at"], self.followers.get(id, {}).get(to, 0))
        if not job:
            was_awaited = to in self.waiting.get(id, ())
            self.waiting.get(id, set()).discard(to)
            if not any((to, how + id) in self.outbox_due for how in "ecad"):
                is_lost = was_awaited or letter["known"] or int(id[:14], 16) >= self.model.arrival.next_id
                self.put(id, "n" if is_lost else "d", to)
            return
        if job.status != "done" or job.result is not None:
            job.readers.add("!" + to)
        if letter["waits"] and job.status != "done":
            self.waiting.setdefault(id, set()).add(to)
        if job.status in ("done", "error", "cancelled"):
            self.put(id, job.status[0], to)

    def left(self, letter):
        id, to = letter["id"], letter["from"]
        if self.followers.get(id, {}).get(to, 0) <= letter["at"]:
            self.waiting.get(id, set()).discard(to)
            self.leave_one(id, to)

    def ended(self, letter):
        id, how = letter["id"], letter["how"]
        dependents = self.model.links.dependents(id)
        if not dependents and not self.is_wanted(id):
            if how != "done" or letter["kept"]:
                self.put(id, FOLLOW)
            return
        if how == "done":
            self.outbox_due.pop((letter["from"], FOLLOW + id), None)
            self.known.pop(id, None)
            if not letter["kept"]:
                self.entered = {pair: at for pair, at in self.entered.items() if pair[1] != id}
        else:
            self.known[id] = "cancelled" if how == "all_cancelled" else how
        if dependents:
            self.news.setdefault(id, []).append((how, letter["seen"], True))
        if how == "all_cancelled":
            self.model.links.doom(
                id, [job for job in dependents if self.entered.get((job.id, id), 0) <= letter["seen"]]
            )
