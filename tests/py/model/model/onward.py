"""Jobs that follow one here, or come of a schedule, and belong to another partition: sections 13 and 22 of
docs/protocol.md. Under which id each waits its first letter tells.
"""

from dataclasses import dataclass
from itertools import count

import msgpack

from model.common import expect, ms, same
from model.part import Part

FULL = "full"


@dataclass
class Going:
    """A job that another partition is to make."""

    subject: str  # of its letters; until one has come, one of our own
    spec: dict
    argument: bytes
    since_ms: int
    schedule: str | None = None
    schedule_ms: int | None = None
    is_beside: bool = False  # the moments of its schedule


def raw(text):
    return text.encode("utf-8", "surrogateescape")


class Onward(Part):
    def __init__(self, model):
        super().__init__(model)
        self.going = {}  # digits of a partition -> those for it, in order
        self.brought = {}  # (digits, id there) -> what was answered
        self.least = {}  # digits -> no earlier id comes from there
        self.numbers = count()

    def parted(self, jobs, outcome, path):
        """Jobs of an outcome that name each other, and are made in two partitions."""
        goes = [bool(self.model.systems.home(spec)) for spec, _ in jobs]
        for i, (spec, _) in enumerate(jobs):
            for k, one in enumerate(spec.get("depends", ())):
                if isinstance(one, int) and (goes[i] or goes[one]):
                    yield "INVALID", f"{path}.enqueue[{i}].depends[{k}]"
        for k, one in enumerate(outcome.get("resume", {}).get("depends", ())):
            if isinstance(one, int) and goes[one]:
                yield "INVALID", f"{path}.resume.depends[{k}]"

    # ---- here ----

    def send(self, to, spec, argument, *moment):
        one = Going(f"j?{next(self.numbers)}", spec, argument, self.model.now, *moment)
        self.going.setdefault(to, []).append(one)
        self.model.mail.outbox_due[to, one.subject] = 0

    def recognize(self, to, letter, due):
        """A letter tells under which id its job waits, and the first of all for this partition."""
        if self.going.get(to):
            self.know(to, self.going[to][0], letter["least"], due)
        known = [one.subject for one in self.going.get(to, ())]
        if "j" + letter["id"] not in known:
            for one in self.going.get(to, ()):
                if one.subject.startswith("j?") and self.says(one) == self.said(letter):
                    return self.know(to, one, letter["id"], due)

    def know(self, to, one, id, due):
        if one.subject.startswith("j?"):
            self.model.mail.outbox_due["", ""] = self.model.mail.outbox_due.pop((to, one.subject))
            if one.subject in due.get(to, ()):
                due[to].discard(one.subject)
                due[to].add("j" + id)
            one.subject = "j" + id
            self.model.mail.outbox_due[to, one.subject] = self.model.mail.outbox_due.pop(("", ""))

    def says(self, one):
        return [one.spec, one.argument, max(self.model.now - one.since_ms, 0), one.schedule, one.schedule_ms]

    def said(self, letter):
        told = [msgpack.unpackb(raw(letter["job"])), raw(letter["argument"]), letter["age_ms"]]
        return [*told, letter.get("schedule"), letter.get("schedule_ms")]

    def check_letter(self, to, subject, letter):
        one = next((one for one in self.going.get(to, ()) if one.subject == subject), None)
        expect(one, "a letter of a job that nobody sent", to, letter)
        same(self.said(letter), self.says(one), "a job of a letter")
        same("j" + letter["least"], self.going[to][0].subject, "the first job that waits for a partition")
        same(letter["generation"], self.model.systems.generation, "the generation of a letter")

    def answered(self, to, subject, answer):
        one = next(one for one in self.going[to] if one.subject == subject)
        self.going[to].remove(one)
        if one.schedule is not None:
            _, id, created = answer.split(" ") if answer != FULL else ("", "", "0")
            self.model.schedules.arrived(one, id, int(created))

    # ---- there ----

    def arrive(self, letter, answer):
        digits, id = letter["from"], letter["id"]
        if known := self.brought.get((digits, id)):
            return same(answer, known, "answer to a letter that came before")
        if id < self.least.get(digits, ""):
            return same(answer, "old", "answer to an old letter")
        self.least[digits] = max(letter["least"], self.least.get(digits, ""))
        for one in [one for one in self.brought if one[0] == digits and one[1] < letter["least"]]:
            del self.brought[one]
        spec, argument, age_ms, schedule, schedule_ms = self.said(letter)
        if "delay" in spec:
            spec["delay"] = max(ms(spec["delay"]) - age_ms, 0) / 1000
        if "expires_in" in spec:
            spec["expires_in"] = max(ms(spec["expires_in"]) - age_ms, 1) / 1000
        self.brought[digits, id] = answer
        is_full = schedule is not None and self.model.schedules.is_full(spec)
        same(answer == FULL, is_full, "whether a schedule's job has room")
        if is_full:
            return
        word, job_id, created = answer.split(" ")
        same(word, "made", "answer to a letter")
        self.model.arrival.create([(spec, argument)], [[job_id, int(created)]])
        if schedule is not None and created == "1":
            job = self.model.jobs[job_id]
            job.schedule, job.schedule_ms = schedule, schedule_ms
