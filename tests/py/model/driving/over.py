"""What a system adds to its partitions: docs/partitions.md. Which of them an operation goes to, and what its reply is
made of. That each did right what it was asked to its own model has checked already.
"""

from driving.merged import Merged
from jqmaster.system.record import partition_of
from jqmaster.wire.operations import GOES_BY, going
from model import ErrorReply, expect
from model.common import ENDED, same

# Operations by what their jobs are named in.
LISTS = {script: GOES_BY[script] or "ids" for script in going("jobs")} | {"refuse": "jobs"}
IN_ALL = (*going("settings"), "touch", "tick", "head")
REMOVING = ("unsubscribe", "revoke", "forget")
HOMES = going("home", "key")


def id_of(item):
    """Of a job that a list names."""
    if isinstance(item, list):
        item = item[0]
    return item["id"] if isinstance(item, dict) else item


def place_in(path):
    """`jobs[3].queue`: 3."""
    return int(path.partition("[")[2].partition("]")[0])


class Over(Merged):
    def __init__(self, driver):
        self.driver = driver

    @property
    def partitions(self):
        return self.driver.partitions

    @property
    def model(self):
        return self.driver.model

    def home(self, value):
        return self.driver.record.home(value.encode())

    def calls(self, script):
        """(partition's number, call) of this script."""
        return [(one.number, call) for one in self.partitions for call in one.calls if call.script == script]

    def check(self, script, fields, reply):
        own = self.own_refusal(script, fields)
        if own:
            expect(isinstance(reply, ErrorReply) and own == reply[:2], "what a system refuses", own, reply)
            same(self.calls(script), [], "calls that were refused")
        elif LISTS.get(script) in fields:
            self.check_list(script, fields, reply)
        elif isinstance(reply, ErrorReply):
            self.check_refusal(script, fields, reply)
        elif hasattr(self, "check_" + script):
            getattr(self, "check_" + script)(fields, reply)
        elif self.model.is_listing(script):
            given = {name: value for name, value in fields.items() if name != "count"}
            self.model.operation("list_" + script)(reply, **given)
        elif "where" in fields and script != "bulk":
            self.check_found(script, fields, reply)
        else:
            self.check_places(script, fields, reply)

    # ---- what is refused ----

    def own_refusal(self, script, fields):
        if fields.get("atomic") and len({partition_of(id) for id in fields.get("ids", ())}) > 1:
            return "INVALID", "atomic"
        if script == "enqueue":
            return self.at_odds(fields["jobs"])
        return None

    def groups(self, jobs):
        """Places of jobs of a call, those together that depend on each other."""
        groups = []
        for place, (spec, _) in enumerate(jobs):
            named = [one for one in spec.get("depends") or () if isinstance(one, int)]
            met = [group for group in groups if group & set(named)]
            groups = [group for group in groups if group not in met] + [{place}.union(*met)]
        return [sorted(group) for group in groups]

    def at_odds(self, jobs):
        """The first job that belongs elsewhere than one that it goes with."""
        found = []
        for group in self.groups(jobs):
            homes = [(place, self.home(jobs[place][0]["unique"])) for place in group if "unique" in jobs[place][0]]
            found += [place for place, home in homes if home != homes[0][1]][:1]
        return ("INVALID", f"jobs[{min(found)}].unique") if found else None

    def check_refusal(self, script, fields, reply):
        """It is what a partition refused, of a job of the call by its place there."""
        refused = [call for _, call in self.calls(script) if call.is_refused]
        if script == "enqueue" and (reply.path or "").startswith("jobs["):
            job = fields["jobs"][place_in(reply.path)]
            refused = [call for call in refused if call.fields["jobs"][place_in(call.reply.path)][1] == job[1]]
            told = [(call.reply.code, call.reply.path.partition(".")[2]) for call in refused]
            return expect((reply.code, reply.path.partition(".")[2]) in told, "a refusal", reply, refused)
        expect(reply[:2] in [call.reply[:2] for call in refused], "a refusal of no partition", reply, refused)

    # ---- jobs by name ----

    def check_list(self, script, fields, reply):
        """Each job where it is; answers in order."""
        name = LISTS[script]
        items = fields[name]
        if not items:
            return self.check_handed_out(reply) if script == "finish" else None
        groups = {}
        for place, item in enumerate(items):
            groups.setdefault(partition_of(id_of(item)), []).append(place)
        found, refused = [None] * len(items), []
        for number, call in self.calls(script):
            if not call.fields[name]:  # what is asked of a worker
                refused += [call.reply[:2]] if call.is_refused else []
                continue
            places = groups.pop(number)
            same(list(map(id_of, call.fields[name])), [id_of(items[place]) for place in places], "jobs of a call")
            if call.is_refused:
                refused.append((call.reply.code, self.told_path(call.reply.path, name, places)))
                continue
            answers = call.reply[0] if script == "finish" or fields.get("control") is True else call.reply
            answers = call.reply if script == "heartbeat" else answers
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer
        same(groups, {}, "jobs that nobody was asked for")
        if refused or isinstance(reply, ErrorReply):
            return expect(isinstance(reply, ErrorReply) and reply[:2] in refused, "a refusal", reply, refused)
        answers = reply[0] if script == "finish" or fields.get("control") is True else reply
        same(answers, found, "answers")
        if script == "finish":
            self.check_handed_out(reply)

    def told_path(self, path, name, places):
        """That of a part, as that of the whole call."""
        head, bracket, rest = (path or "").partition("[")
        if head != name or not bracket:
            return path
        place, _, rest = rest.partition("]")
        return f"{name}[{places[int(place)]}]{rest}"

    # ---- work ----

    def check_pick(self, fields, reply):
        self.check_handed_out([[], reply])

    def check_handed_out(self, reply):
        """Whatever partitions started is told; where nothing is, all of them were asked."""
        if isinstance(reply, ErrorReply):
            return
        if len(reply) < 2:
            return
        picks = [(number, call.reply[1]) for number, call in self.calls("finish") if len(call.reply) > 1]
        picks += [(number, call.reply) for number, call in self.calls("pick")]
        told = [doc["id"] for doc, _ in reply[1][1:]]
        started = [doc["id"] for _, one in picks for doc, _ in one[1:]]
        same(sorted(told), sorted(started), "jobs that a pick started")
        if told:
            return
        last = dict(picks)  # a partition that was asked once more knows best
        if [0] not in last.values():
            same(len(last), len(self.partitions), "how many partitions a pick asked that found nothing")
        soonest = min((one[0] for one in last.values() if one[0] >= 0), default=-1)
        expect(reply[1][0] == soonest or 0 < reply[1][0] < soonest, "next_ms over partitions", reply[1][0], picks)

    def check_tick(self, fields, reply):
        answers = [call.reply for _, call in self.calls("tick")]
        same(len(answers), len(self.partitions), "partitions that ticked")
        nexts = [next_ms for next_ms, _ in answers if next_ms >= 0]
        same(reply, [min(nexts, default=-1), sum(moved for _, moved in answers)], "tick")

    def check_head(self, fields, reply):
        heads = [call.reply for _, call in self.calls("head")]
        same(len(heads), len(self.partitions), "partitions that told their heads")
        same(reply, min(filter(None, heads), default=[]), "head")

    # ---- arrival ----

    def check_enqueue(self, fields, reply):
        jobs, token = fields["jobs"], (fields["options"] or {}).get("request")
        same(len(reply), len(jobs), "as many answers as jobs")
        places = [partition_of(id) for id, _ in reply]
        chosen = {self.home(token)} if token else set()
        for (spec, argument), (id, _) in zip(jobs, reply, strict=True):
            job = self.model.jobs.get(id)
            if job and "unique" not in spec and not token:  # else another of the call may have changed it
                same((job.name, job.argument), (spec["name"], argument), "the job of an answer")
        for group in self.groups(jobs):
            belongs = [self.home(jobs[place][0]["unique"]) for place in group if "unique" in jobs[place][0]]
            depends = [one for place in group for one in jobs[place][0].get("depends") or () if isinstance(one, str)]
            home = (belongs or list(map(partition_of, depends)) or [None])[0]
            found = {places[place] for place in group}
            if home is None:
                chosen |= found
            else:
                same(found, {home}, "where jobs belong")
        expect(len(chosen) <= 1, "jobs that belong nowhere stay together", chosen)

    # ---- what goes to one, or to all ----

    def check_places(self, script, fields, reply):
        calls = self.calls(script)
        if script in HOMES:
            value = fields[GOES_BY[script]]
            is_id = script in ("unregister", "worker") and value.startswith("w0")
            same([number for number, _ in calls], [partition_of(value[1:]) if is_id else self.home(value)], "its home")
        elif script in going("job"):
            same([number for number, _ in calls], [partition_of(fields["id"])], "the partition of a job")
        elif script in IN_ALL and (script != "config" or fields.keys() & {"set", "unset"}):
            expect({number for number, _ in calls} == {one.number for one in self.partitions}, "in all", calls)
        # What is to be removed need not be everywhere.
        told = [call.reply for _, call in calls if script not in REMOVING or not call.is_refused]
        same(reply, told[0], script)

    def check_explain(self, fields, reply):
        told = {name: value for name, value in reply.items() if name != "partition"}
        self.check_places("explain", fields, told)
        same(reply["partition"], partition_of(fields["id"]), "the partition of an explanation")

    def check_touch(self, fields, reply):
        same(reply, max(call.reply for _, call in self.calls("touch")), "touch")

    def check_stats(self, fields, reply):
        self.model.statistics.stats(reply, **fields)

    def check_queue(self, fields, reply):
        same(len(self.calls("queue")), len(self.partitions), "partitions with the queue's settings")
        self.model.queues.check_queue(reply, fields["name"])

    def check_kick(self, fields, reply):
        """Of a queue or a worker, from one partition to the next."""
        calls = self.calls("kick")
        same(reply[0], sum(call.reply[0] for _, call in calls if not call.is_refused), "kick: jobs")
        left = any(call.reply[1] for _, call in calls if not call.is_refused)
        is_all = len(calls) == len(self.partitions)
        expect(reply[1] == int(left or not is_all), "kick: whether there are more", reply, calls)

    def check_found(self, script, fields, reply):
        """All jobs that fit, page by page: what each partition did, in all."""
        totals = dict.fromkeys(range(len(self.partitions)), 0)
        for number, call in self.calls(script):
            totals[number] += call.reply[1]
        for one in self.partitions:
            one.told(script, {name: value for name, value in fields.items() if name != "cursor"}, totals[one.number])
        same(reply, [sum(totals.values())], "jobs changed")

    # ---- what must hold at any time ----

    def check_alike(self):
        """What is set in all is the same in all."""
        first, *others = [one.model for one in self.partitions]
        for other in others:
            same(other.settings, first.settings, "settings of partitions")
            same(set_in_queues(other), set_in_queues(first), "settings of queues")
            same(sorted(other.access.api_keys), sorted(first.access.api_keys), "keys")
            same(other.webhooks.defined, first.webhooks.defined, "webhooks")

    def check_homes(self):
        """When all mail has come, jobs are where their keys are."""
        for one in self.partitions:
            left = [job for jobs in one.model.onward.going.values() for job in jobs]
            same(left, [], "jobs that are not where they belong")
            for job in one.model.jobs.values():
                if job.unique is not None:
                    same(self.home(job.unique), one.number, "the partition of a job with a key")

    def check_dependencies(self):
        """When all mail has come nobody waits any more for what is over."""
        for one in self.partitions:
            for job in one.model.jobs.values():
                for id in filter(one.model.mail.is_elsewhere, job.waits_for):
                    there = self.partitions[partition_of(id)].model
                    other = there.jobs.get(id)
                    state = other.status if other else there.links.ended_as.get(id)
                    expect(state is not None or job.if_failed == "wait", "waits for one that never was", job, id)
                    expect(state != "done", "waits for one that is done", job, other)
                    if state in ENDED:
                        expect(job.if_failed == "wait", "waits for one that failed", job, other or state)


def set_in_queues(model):
    return {name: own for name, own in model.queues.own_settings.items() if own}
