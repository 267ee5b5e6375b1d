"""How much matching a call takes: docs/limits.md."""

from copy import copy

from model.common import ErrorReply
from model.matcher import conditions, entry_holds
from model.part import Part

MOST_ASKED = 300_000  # conditions that a call may have to look at, for more than one job
FIXED = {"name", "queue"}


class Bounds(Part):
    def moved(self, job, queue):
        """The job as it will be in another queue."""
        moved = copy(job)
        moved.queue = queue or job.queue
        return moved

    def matching(self, reply, jobs, path, queue=None):
        """Too many conditions for the jobs that a call brings or names; of a matcher with `any` or `not` it may be
        too many."""
        asked = [self.conditions(self.moved(job, queue)) for job in jobs]
        least, most = (sum(numbers) if len(asked) > 1 else 0 for numbers in zip((0, 0), *asked, strict=True))
        may = most > MOST_ASKED and isinstance(reply, ErrorReply) and reply[:2] == ("INVALID", path)
        if least > MOST_ASKED or may:
            yield "INVALID", path

    def conditions(self, job):
        """How many there are to look at for a job, at least and at most."""
        found = [
            constraint
            for constraint in self.limits.constraints.values()
            if all(entry_holds(*entry, job) for entry in constraint.match if entry[0] in FIXED)
        ]
        if all(self.is_fixed(constraint) for constraint in found):
            return 0, 0
        least, most = map(sum, zip(*(conditions(constraint.match) for constraint in found), strict=True))
        return (0 if getattr(job, "may_be_gone", False) else least), most

    def is_fixed(self, constraint):
        asks = {about for about, _ in constraint.match}
        return asks <= FIXED and not constraint.paths and not isinstance(constraint.cost, str)
