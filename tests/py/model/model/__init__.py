"""The reference model: what docs/protocol.md says, in lists and loops. Each part owns what it knows; the model has the
parts, the jobs, the settings and the clock.

Every operation gets the engine's reply, says whether a user who had read the protocol would accept it, and
then does the same to its own jobs. Where the protocol leaves a choice to the engine (ids, jitter, the turn of
`round_robin`, when an old record goes) the model checks that the choice is one of those allowed, and follows.
A decision about what the page leaves open is written into the page, and then followed here.
"""

from model.access import Access
from model.alerts import Alerts
from model.arrival import Arrival
from model.bounds import Bounds
from model.bulks import Bulks
from model.clock import Clock
from model.common import DEFAULTS, ErrorReply, Mismatch, Refused, expect
from model.finding import Finding
from model.life import Life
from model.limit_documents import LimitDocuments
from model.limits import Limits
from model.links import Links
from model.marks import Marks
from model.needs import Needs
from model.order import Order
from model.outcomes import Outcomes
from model.part import Part
from model.queues import Queues
from model.schedules import Schedules
from model.sleepers import Sleepers
from model.statistics import Statistics
from model.trace import Trace
from model.webhooks import Webhooks
from model.work import Work
from model.workers import Workers

__all__ = ["ErrorReply", "Mismatch", "Model", "Refused", "expect"]


class Model:
    def __init__(self, look, look_at_worker, look_at_keys, look_at_schedule, look_for_new, look_at_events, is_asleep):
        """Three of them: id -> the engine's document, or None. look_at_keys: a constraint's id -> documents
        of `usage`. look_for_new: an id -> those after it. look_at_events: what was published since the last
        check. is_asleep: (who, channel). Used only where the engine has a choice."""
        self.look = look
        self.look_at_worker = look_at_worker
        self.look_at_keys = look_at_keys
        self.look_at_schedule = look_at_schedule
        self.look_for_new = look_for_new
        self.look_at_events = look_at_events
        self.is_asleep = is_asleep
        self.now = 0
        self.jobs = {}
        self.settings = dict(DEFAULTS)
        self.latest = 0  # the latest moment ever
        self.life = Life(self)
        self.clock = Clock(self)
        self.queues = Queues(self)
        self.arrival = Arrival(self)
        self.links = Links(self)
        self.needs = Needs(self)
        self.outcomes = Outcomes(self)
        self.work = Work(self)
        self.finding = Finding(self)
        self.limits = Limits(self)
        self.limit_documents = LimitDocuments(self)
        self.order = Order(self)
        self.workers = Workers(self)
        self.sleepers = Sleepers(self)
        self.schedules = Schedules(self)
        self.trace = Trace(self)
        self.statistics = Statistics(self)
        self.access = Access(self)
        self.marks = Marks(self)
        self.webhooks = Webhooks(self)
        self.bounds = Bounds(self)
        self.bulks = Bulks(self)
        self.alerts = Alerts(self)
        self.parts = [part for part in vars(self).values() if isinstance(part, Part)]

    def operation(self, name):
        """What checks this operation of the engine."""
        for part in self.parts:
            if name in part.operations:
                return getattr(part, name)
        raise LookupError(f"no part of the model has {name!r} in its `operations` (a listing's begins with list_)")

    def is_listing(self, script):
        """Whether it answers in pages, of which the model is given all documents: then a part has `list_<script>`."""
        return any("list_" + script in part.operations for part in self.parts)

    def transition(self, job, was, event=None):
        """Every change of a state comes by here. `event` is what the job's history calls it, if it does."""
        parts = (self.trace, self.statistics, self.limits, self.workers, self.arrival, self.links)
        for part in (*parts, self.queues, self.webhooks):
            part.transition(job, was, event)

    def after_operation(self):
        """Records of which none are kept go with the operation, others are free to go."""
        self.jobs = {id: job for id, job in self.jobs.items() if not job.goes_at_once}
        for job in self.life.beyond_limits():
            job.may_be_gone = True
        self.access.trim()
        self.webhooks.after_operation()

    # ---- not operations: what must hold besides ----

    def advance(self, delta_ms):
        self.sleepers.move_clock(delta_ms)
        self.latest = max(self.latest, self.now)
        self.arrival.move_clock()
        if delta_ms < 0:  # what seemed over may be, or not: what the engine has dropped is gone
            self.sleepers.lose_track_of_sleepers()
            self.limit_documents.forget_keys(self.now - delta_ms)
            for job in list(self.jobs.values()):
                doc = self.look(job.id)
                if job.may_be_gone and doc is None:
                    del self.jobs[job.id]
                elif doc and self.life.has_result(job) and "result" not in doc:
                    job.result = None

    def settled(self, old):
        """Time enough has passed for the records `old`, and everything due is done."""
        beyond = self.life.beyond_limits()
        for job in list(self.jobs.values()):
            expect(not self.clock.is_due(job), "was due and not done", job, self.now)
            doc = self.look(job.id)
            if doc is None and job.may_be_gone:
                del self.jobs[job.id]
            elif job not in beyond:
                job.may_be_gone = False
            else:
                expect(doc is None or job.id not in old, "a record is kept beyond its limit", doc, self.now)
        expect(not self.clock.dead_workers(), "a dead worker is still there", self.clock.dead_workers())
