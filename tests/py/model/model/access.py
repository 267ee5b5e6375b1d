"""Keys of the HTTP API, and the trail: docs/operating.md."""

import msgpack

from jqmaster.manifest.manifest import operations
from model.common import ENDED, Refused, accepted, ms, same
from model.part import Part

# Operations that may say who calls them, each with its arguments; bulks are noted by what they do.
NOTED = {name: {argument.name for argument in one.arguments} for name, one in operations().items() if name != "bulk"}
NOTED = {name: arguments for name, arguments in NOTED.items() if "actor" in arguments}
OF_JOBS = {name for name, arguments in NOTED.items() if "ids" in arguments}
HIDDEN = ("ids", "count", "digest", "declared", "match", "secrets", "known")
MOST_BYTES = 1000
NOT_CHANGED = ("NOTFOUND", "CONFLICT")


def plain(value):
    """As a script packs it: what is empty is a list, and what is nil is not there."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if one is not None} or []
    return [plain(one) for one in value] if isinstance(value, list) else value


def is_rounded(value):
    """Whether Lua may not know a number in it exactly."""
    if isinstance(value, (list, dict)):
        return any(map(is_rounded, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float)) and abs(value) >= 2**53


class Access(Part):
    operations = ("grant", "revoke", "touch", "list_keys", "list_trail")

    def __init__(self, model):
        super().__init__(model)
        self.api_keys = {}  # id -> (digest, document)
        self.trail = []  # the oldest first

    def grant(self, reply, id, digest, name, roles, queues=None, ttl=None, rate=None):
        known = self.api_keys.get(id)
        if known and known[0] != digest:
            raise Refused("CONFLICT", "id")
        accepted(reply)
        if not known:
            now = self.model.now
            document = {"id": id, "name": name, "roles": roles, "queues": queues, "rate": rate, "created_ms": now,
                        "expires_ms": None if ttl is None else now + ms(ttl)}  # fmt: skip
            known = self.api_keys[id] = digest, {k: v for k, v in document.items() if v is not None}
        same(reply, known[1], "grant")

    def lasts(self, id):
        """Whether a key is there, and has not expired."""
        return id in self.api_keys and self.model.now < self.api_keys[id][1].get("expires_ms", float("inf"))

    def revoke(self, reply, id):
        if id not in self.api_keys:
            raise Refused("NOTFOUND", "id")
        accepted(reply)
        del self.api_keys[id]

    def touch(self, reply, ids):
        accepted(reply)
        there = [id for id in ids if id in self.api_keys]
        same(reply, len(there), "touch")
        for id in there:
            self.api_keys[id][1]["used_ms"] = self.model.now

    def list_keys(self, reply, digests=False, count=None):
        accepted(reply)
        keys = [doc | ({"digest": digest} if digests else {}) for _, (digest, doc) in sorted(self.api_keys.items())]
        same(reply, keys, "keys")

    def list_trail(self, reply, count=None, what=None):
        accepted(reply)
        expected = [entry for entry in self.trail[::-1] if what in (None, entry["what"])]
        for i, entry in enumerate(reply):
            if entry["what"] in ("constrain", "subscribe"):  # matchers hold values that no other reply gives
                if "change" in entry:
                    entry["change"].pop("match", None)
                elif i < len(expected):  # with its matcher it was too long
                    expected[i] = {field: value for field, value in expected[i].items() if field != "change"}
        same(reply, expected, "trail")

    def before_change(self, script, fields):
        """What a call would be told by; None: it is not noted."""
        is_look = (script == "config" and "set" not in fields) or (
            script == "queue" and fields.keys() <= {"name", "actor", "known"}
        )
        is_noted = script in NOTED and not is_look and not self.is_declared(script, fields)
        if not is_noted or self.model.settings["trail_max"] == 0:
            return None
        fields = {k: v for k, v in fields.items() if k not in HIDDEN}
        ids = {"queue": "name", "forget": "name", "worker": "worker", "config": "", "free": "unique", "mark": "text"}
        of_jobs = script in OF_JOBS
        _, key = self.api_keys.get(fields.get("id"), (None, {}))
        return {"actor": fields.pop("actor", ""), "what": script, "fields": fields, "of_jobs": of_jobs,
                "key": key.get("name"), "on": None if of_jobs else fields.get(ids.get(script, "id"))}  # fmt: skip

    def is_declared(self, script, fields):
        """Whether a program declares what it declared before."""
        known = {"constrain": self.model.limits.constraints, "schedule": self.model.schedules.defined}.get(script, {})
        one = known.get(fields.get("id"))
        return one is not None and one.declared is not None and one.declared == fields.get("declared")

    def add_to_trail(self, change, reply, fields):
        """A change that was made."""
        told, on = change["fields"], change["on"]
        is_known = change["what"] == "grant" and change["key"] is not None
        count = None
        if change["of_jobs"]:
            on = (fields.get("ids") or [None])[0] or told.get("where", {}).get("queue")
            count = self.changed_jobs(change["what"], reply, fields)
        is_known = is_known or (change["what"] == "mark" and not self.model.marks.is_new)
        if is_known or (count == 0 and "where" not in fields):
            return
        if change["what"] == "revoke":
            told = {**told, "name": change["key"]}
        told = plain(
            {k: v for k, v in told.items() if k not in ("argument", "actor") and v != on and not is_rounded(v)}
        )
        if change["what"] == "hold" and "by" in fields and not is_rounded(fields["by"]):
            told["by"] = fields["by"]  # nil too
        if len(msgpack.packb(told)) > MOST_BYTES:
            told = None
        entry = {"time_ms": self.model.now, "actor": change["actor"], "what": change["what"], "on": on,
                 "change": told or None, "count": count}  # fmt: skip
        self.trail.append({k: v for k, v in entry.items() if v is not None})

    def changed_jobs(self, script, reply, fields):
        """How many jobs were."""
        if "where" in fields:
            return reply
        return sum(answer not in NOT_CHANGED and (script != "cancel" or answer not in ENDED) for answer in reply)

    def trim(self):
        most = self.model.settings["trail_max"]
        self.trail = self.trail[-most:] if most else []
