"""One model of all partitions, to hold merged replies against: it has what they have, and only looks."""

from model import Model


class United(Model):
    """The model of a system, made of those of its partitions."""

    def __init__(self, partitions):
        self.partitions = partitions
        super().__init__(self.look_there, None, None, None, None, None)

    def look_there(self, id):
        return next((doc for one in self.partitions if (doc := one.model.look(id))), None)

    def refresh(self):
        each = [one.model for one in self.partitions]
        first = each[0]
        self.now, self.latest, self.settings = first.now, first.latest, first.settings
        self.jobs = {id: job for one in each for id, job in one.jobs.items()}
        self.queues.own_settings, self.order.fair = first.queues.own_settings, first.order.fair
        self.queues.records = {}
        for one in each:
            for name, record in one.queues.records.items():
                known = self.queues.records.get(name, {"paused": False, "max_waiting": 0})
                most = known["max_waiting"] + record["max_waiting"]
                self.queues.records[name] = {"paused": known["paused"] or record["paused"], "max_waiting": most}
        self.workers.registered = {id: worker for one in each for id, worker in one.workers.registered.items()}
        self.workers.others = {id: worker for one in each for id, worker in one.workers.others.items()}
        self.statistics.happened = [told for one in each for told in one.statistics.happened]
        self.schedules.defined = {id: one for model in each for id, one in model.schedules.defined.items()}
        self.arrival.keys = {name: key for one in each for name, key in one.arrival.keys.items()}
        self.work.requests = {token: answer for one in each for token, answer in one.work.requests.items()}
        self.life.tokens = {attempt: token for one in each for attempt, token in one.life.tokens.items()}
        self.limits.constraints = first.limits.constraints
        self.bulks.all, self.marks.marks = first.bulks.all, first.marks.marks
        self.access.api_keys = {}
        for id, (digest, _) in first.access.api_keys.items():
            documents = [one.access.api_keys[id][1] for one in each]
            self.access.api_keys[id] = digest, max(documents, key=lambda doc: doc.get("used_ms", 0))
