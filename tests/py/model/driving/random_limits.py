"""Random constraints for the model test: few names, queues and values, so that keys collide."""

from driving.wire import plain_matcher
from model.common import ALL
from model.matcher import NOT_WHOLE, kind, pack

LONG = "long " * 20
ARGUMENTS = [
    *map(pack, (
        {"c": 1}, {"c": 1.0, "n": 2}, {"c": 2, "n": 0.5}, {"c": "x", "to": {"k": [1, 2]}}, {"c": "x", "n": 7},
        {"c": "y", "to": {"k": ["x", "y"]}, "n": 1}, {"c": b"x"}, {"c": (5, b"ext")}, {"c": 2**63},
        {"c": 2**63 - 1}, {"c": -(2**63)}, {"c": 2**53 + 1}, {"c": float(2**53)}, {"c": None}, {"c": True},
        {"c": LONG}, {"c": {"k": 1}}, {"c": [1]}, {"n": 3, "c": -7}, {"n": -1}, {"n": "3"}, {0: {"c": 1}}, {},
        [{"c": 1}], [], "text", 5, None,
    )),
    b"\x81\xa1c\xca\x3f\x80\x00\x00",  # {"c": 1.0}, of 32 bits
    b"\x81\xa1c\xd3" + b"\0" * 7 + b"\1",  # {"c": 1}, of 64 bits
    b"\x81\xa1c\xcb\x7f\xf8" + b"\0" * 6,  # {"c": NaN}
    *NOT_WHOLE,
]  # fmt: skip
IDS = ["k1", "k2", "k3", "a*é b"]
PATHS = ["argument.c", "argument.c", "argument.c", "argument.n", "argument.to.k.0", "name", "queue",
         "priority", "argument.0.c", "argument.c.k"]  # fmt: skip
SCALARS = [1, 1.0, 2, "x", "y", 2**53 - 1, True, LONG]
CONDITIONS = {
    "name": ["*", "*", "mail.*", ["a", "mail.*"], {"glob": "*a*"}, {"ne": "a"}, {"ge": "b"}],
    "queue": ["*", "a", ["b", "mail.*"], {"ne": "mail.jp"}, {"in": ["a", "b"]}],
    "priority": [0, 0.0, [0, 1], {"ge": 0}, {"lt": 1, "gt": -6}, {"ne": 0}],
    "tags": ["t1", ["t1", "t2"], {"ne": "t1"}, {"exists": False}, {"exists": True},
             {"glob": "t*", "ne": "t2"}],
    "argument": [{"exists": True}, "text", 5, {"ne": 5}],
    "argument.c": [*SCALARS, ["x", 1], ["y", "z"], {"exists": True}, {"exists": False}, {"ne": 1}, {"lt": 2},
                   {"gt": 0, "le": 2}, {"ge": "a"}, {"glob": "*o*g*"}, {"lt": "y", "glob": "*"}],
    "argument.n": [{"lt": 3}, {"exists": True}, {"ge": 0.5}],
    "argument.to.k.1": [2, "y", {"exists": False}],
    "argument.0.c": [1, {"exists": False}],
}  # fmt: skip
PERIODS = [0.05, 0.1, 0.5, 1, 3, 20]
WEIGHTS = {
    "constrain": 4, "unconstrain": 0.8, "constraints": 0.8, "usage": 1.2, "hold": 1.5, "explain": 4,
    "queue": 2,
}  # fmt: skip


class ConstraintGenerator:
    """Needs what random_jobs.Generator has."""

    is_crowded = False

    def suit_constraints(self):
        """Few queues, few arguments."""
        self.names = self.rng.sample(["a", "b", "mail.jp", "mail.de"], self.rng.randint(1, 3))
        self.queues_used = [*self.names, self.rng.choice(["a", "b", "mail.us"])]
        self.arguments = self.rng.sample(ARGUMENTS, self.rng.randint(2, 6))
        self.is_crowded = self.chance(0.04)  # more keys than a pick looks at in one call
        if self.is_crowded:
            self.arguments = [pack({"c": number, "n": number % 7}) for number in range(300)]
        self.most = self.rng.randint(1, 4)

    # ---- operations ----

    def constrain(self):
        known = self.driver.model.limits.constraints
        if (known and self.chance(0.45)) or len(known) >= self.most:
            return self.changed(known[self.rng.choice(list(known))])
        fields = {"id": self.rng.choice(IDS), **self.limits(), "match": self.matcher()}
        if self.chance(0.55):
            some = self.rng.sample(PATHS, self.rng.choice((1, 1, 2, 3)))
            fields["by"] = some[0] if len(some) == 1 and self.chance(0.8) else some
        return self.declared(fields)

    def declared(self, fields):
        if self.chance(0.2):
            fields["declared"] = self.rng.choice(("one", "two"))
        return fields

    def changed(self, old):
        """An old constraint, the same or with something else about it."""
        fields = {"id": old.id, **old.given, "match": plain_matcher(old.match)}
        change = self.rng.choice(("nothing", "limit", "limit", "concurrency", "concurrency", "limits", "match", "by"))
        if change == "limit" and old.rate:
            fields["rate"] = {**old.rate, "limit": self.rng.randint(1, 5)}
        elif change == "concurrency" and old.concurrency:
            fields["concurrency"] = self.rng.randint(1, 5)
        elif change == "limits":
            for field in ("concurrency", "rate"):
                fields.pop(field, None)
            fields |= self.limits()
        elif change == "match":
            fields["match"] = self.matcher()
        elif change == "by":
            fields["by"] = self.rng.choice(PATHS)
        return self.declared(fields)

    def limits(self):
        limits = {}
        kind = self.rng.choice(("concurrency", "concurrency", "rate", "rate", "both"))
        if kind != "rate":
            limits["concurrency"] = self.rng.choice((1, 1, 2, 3, 5))
        if kind != "concurrency":
            limits["rate"] = {"limit": self.rng.choice((1, 1, 2, 3, 7)), "period": self.rng.choice(PERIODS)}
        return limits

    def matcher(self, depth=0):
        if self.chance(0.35):
            return {"name": "*"}
        if depth < 2 and self.chance(0.15):
            return {"any": [self.matcher(depth + 1) for _ in range(self.rng.randint(1, 3))]}
        about = self.rng.sample(list(CONDITIONS), self.rng.choice((1, 1, 1, 2)))
        matcher = {name: self.rng.choice(CONDITIONS[name]) for name in about}
        if depth < 2 and self.chance(0.1):
            matcher["not"] = {"argument.n": self.rng.choice(CONDITIONS["argument.n"])}
        return matcher

    def constraint_id(self):
        known = list(self.driver.model.limits.constraints)
        return self.rng.choice(known) if known and self.chance(0.95) else "unknown"

    def hold(self):
        fields = {"id": self.constraint_id(), "seconds": self.rng.choice((0, 0, 0.001, 0.2, 1, 5, 30))}
        constraint = self.driver.model.limits.constraints.get(fields["id"])
        if constraint and "by" in constraint.given:
            is_list = isinstance(constraint.given["by"], list)
            seen = [v for v in constraint.values.values() if all(map(self.may_be_named, v))]
            values = self.rng.choice(seen) if seen else [self.rng.choice((1, "x", 2.5)) for _ in constraint.paths]
            fields["by"] = values if is_list else values[0]
            if self.chance(0.03):
                fields.pop("by")
        return fields

    def may_be_named(self, value):
        if kind(value) == "number":
            return abs(value) < 2**63
        return kind(value) in ("text", "boolean", "nil")

    def sharing(self):
        if self.chance(0.3):
            return {}
        sharing = {"by": self.rng.choice(("argument.c", "argument.c", "argument.to.k.0", "name", "priority"))}
        if self.chance(0.5):
            sharing["weights"] = {"x": 2, "1": 0.5, "a": 3, "mail.jp": 0.3}
        return sharing

    def holds_of_release(self):
        known = list(self.driver.model.limits.constraints)
        some = self.rng.sample(known, min(len(known), self.rng.randint(1, 2)))
        if self.chance(0.03):
            some = [*some, "unknown"]
        if self.chance(0.1):
            some = [*some, "*"]
        return {id: self.rng.choice((0.05, 1, 5)) for id in some}

    def opening_moments(self):
        model = self.driver.model
        yield from model.limits.openings(ALL)
        for constraint in model.limits.constraints.values():
            yield from constraint.held_until_ms.values()
