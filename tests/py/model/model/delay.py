"""What held jobs before their first start, of which the engine tells as far as it knows: what it says is to be true."""

from model.common import expect, ms
from model.part import Part

SHORTEST_MS = 1000  # what held for less is not told


class Delay(Part):
    def __init__(self, model):
        super().__init__(model)
        self.closed = {}  # id of a constraint -> moments at which a key of it had no room; None: a rate decides

    def transition(self, job, was, event=None):
        """What a job leaves had no room until now, if it was full."""
        limits = self.limits
        left = [] if was is None else [pair for pair in limits.keys_of(job) if pair[0].concurrency is not None]
        left = [pair for pair in left if was == "running" or pair[0].is_strict]
        holders = limits.holders() if left else {}
        for constraint, key in left:
            if holders.get((constraint.id, key), 0) + 1 >= constraint.concurrency:
                self.note(constraint.id, self.now)

    def note(self, id, *moments):
        if self.closed.setdefault(id, set()) is not None:
            self.closed[id].update(moments)

    def constrained(self, constraint):
        if constraint.rate:
            self.closed[constraint.id] = None

    def held_by_hand(self, id, seconds):
        self.note(id, self.now, self.now + ms(seconds))

    def checked(self, told, job):
        """An event of a history without what held the job."""
        left = {field: value for field, value in told.items() if not field.startswith("held_")}
        if left != told:
            id, until_ms = told["held_by"], told["held_until_ms"]
            expect((told["event"], told["attempt"]) == ("started", 1), "history: what held a start", told)
            is_long = job.created_ms + SHORTEST_MS <= until_ms <= told["time_ms"]
            expect(is_long and id in self.closed, "history: what did not hold it", told)
            expect(self.closed[id] is None or until_ms in self.closed[id], "history: what had room", told)
        return left
