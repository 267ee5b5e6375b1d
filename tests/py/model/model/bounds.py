"""How many queues, names, tags and keys of constraints a namespace takes, and how much matching a call:
docs/operating.md and docs/limits.md.

Only what is asked for now is refused. Which keys are in use is the engine's to say, and where the clock has made a
record free to go, whether its tags are still there.
"""

from copy import copy
from itertools import product

from model.common import ErrorReply
from model.life import Job
from model.matcher import MISSING, conditions, entry_holds, matches_job, shown_part, value_at
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
        for i, spec, argument in jobs:
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
            if self.is_under_too_many_keys(spec, argument):
                yield "FULL", f"jobs[{i}]"

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

    # ---- keys ----

    def keys_in_use(self):
        """Constraint's id -> the keys that the engine has in use."""
        return {id: self.engine.look_at_keys(id) for id in self.limits.constraints}

    def is_full(self, in_use, id=None):
        """Whether no other key of a constraint, or of a new one, may come."""
        is_one = id is not None and len(in_use[id]) >= self.most("keys")
        return is_one or sum(map(len, in_use.values())) >= self.most("all_keys")

    def is_in_use(self, in_use, constraint, values):
        shown = {self.limit_documents.shown(doc, constraint) for doc in in_use[constraint.id]}
        return any(parts in shown for parts in product(*map(shown_part, values)))

    def is_new_key(self, constraint, values):
        """Whether a constraint takes no key of these values, as it is none of those in use."""
        in_use = self.keys_in_use()
        return self.is_full(in_use, constraint.id) and not self.is_in_use(in_use, constraint, values)

    def is_under_too_many_keys(self, spec, argument):
        keyed = [constraint for constraint in self.limits.constraints.values() if constraint.paths]
        if not keyed or min(self.most("keys"), self.most("all_keys")) > 1000:
            return False
        given = {field: spec[field] for field in ("priority", "tags") if field in spec}
        queue = spec.get("queue", spec["name"])
        job = Job(id="", argument=argument, name=spec["name"], queue=queue, created_ms=0, **given)
        for constraint in keyed:
            if matches_job(constraint.match, job):
                values = [value_at(job, path) for path in constraint.paths]
                if self.is_new_key(constraint, [None if value is MISSING else value for value in values]):
                    return True
        return False


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
