"""How many queues, names and tags a namespace takes, and how much matching a call:
docs/operating.md and docs/limits.md.

Only what is asked for now is refused. Where the clock has made a record free to go, the engine says whether its tags
are still there.
"""

from copy import copy

from model.common import ErrorReply
from model.matcher import conditions, entry_holds
from model.part import Part
from model.statistics import COUNTS

MOST_ASKED = 300_000  # conditions that a call may have to look at, for more than one job
FIXED = {"name", "queue"}


class Bounds(Part):
    def most(self, things):
        return self.settings[things + "_max"]

    def no_queue(self, name, others=()):
        """Whether there is no room for a queue of this name, beside other new ones."""
        known = self.queues.records.keys() | set(others)
        return name not in known and len(known) >= self.most("queues")

    def over(self, reply, jobs):
        """What is too much of the jobs that come, (index, spec, argument) each: codes and paths, where engine and model
        must agree, or may."""
        queues, pairs, tags = set(), self.known_pairs(), Tags(self)
        for i, spec, _ in jobs:
            queue = spec.get("queue", spec["name"])
            if self.no_queue(queue, queues):
                yield "FULL", f"jobs[{i}].queue"
            queues.add(queue)
            if self.settings["stats"]:
                pair = queue, spec["name"]
                if queue != spec["name"] and pair not in pairs and len(pairs) >= self.most("names"):
                    yield "FULL", f"jobs[{i}].name"
                pairs.add(pair)
            yield from tags.over(reply, spec.get("tags") or (), f"jobs[{i}]")

    def known_pairs(self):
        """Of queue and name, that statistics know."""
        return {pair for _, pair, what, _ in self.statistics.happened if what in COUNTS}

    # ---- matching ----

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


class Tags:
    """The tags that there are, and those that a call brings."""

    def __init__(self, bounds):
        jobs = bounds.model.jobs.values()
        self.sure = {tag for job in jobs if not job.may_be_gone for tag in job.tags or ()}
        self.possible = {tag for job in jobs for tag in job.tags or ()}
        self.most = bounds.most("tags")

    def over(self, reply, tags, path):
        for j, tag in enumerate(tags):
            error = "FULL", f"{path}.tags[{j}]"
            must = tag not in self.possible and len(self.sure) >= self.most
            may = tag not in self.sure and len(self.possible) >= self.most
            if must or (may and isinstance(reply, ErrorReply) and reply[:2] == error):
                yield error
            self.sure.add(tag)
            self.possible.add(tag)
