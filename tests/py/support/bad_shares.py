"""Wrong shares of constraints, and balancers that may not share them out."""

from bad_values import NOT_TEXT, encode, integers

EPOCH = "1-a"
LOOK = {"epoch": EPOCH, "turn": 1}
TOLD = {**LOOK, "until_ms": 1, "shares": {}}
EPOCHS = [*NOT_TEXT, "", "x", "1-", "1-A\n", "1" * 39 + "-1"]
TURNS = integers(0, 10**15)
LEASES = integers(1, 60000)


def targets(target):
    fields = {"epoch": EPOCHS, "turn": TURNS}
    shares = [5, True, "x", [1]]
    return [
        target("look at shares", "share", LOOK, fields, ["epoch", "turn"]),
        target("shares", "share", TOLD, {**fields, "until_ms": TURNS, "shares": shares}, ["epoch", "turn"]),
        target("balance", "balance", {"lease_ms": 1}, {"lease_ms": LEASES, "generation": TURNS}, ["lease_ms"]),
        target("balanced", "balance", {**LOOK, "lease_ms": 1}, {"lease_ms": LEASES, **fields}, ["epoch", "turn"],
               lambda spec: [spec, b""]),
    ]  # fmt: skip


def of_shares(invalid, refused):
    for wrong in (5, "x", [], ["a", 1], ["a", 1, 1, 1], [1, 1, 1], {"a": 1}):
        yield invalid("share", f"a share {wrong}", "shares.c", encode({**TOLD, "shares": {"c": wrong}}))
    for wrong in (-1, 1.5, "1", True, 1e9 + 1):
        yield invalid("share", f"a number {wrong}", "shares.c[1]", encode({**TOLD, "shares": {"c": ["a", wrong, 0]}}))
        yield invalid("share", f"a rate {wrong}", "shares.c[2]", encode({**TOLD, "shares": {"c": ["a", 0, wrong]}}))
    yield invalid("share", "shares without an end", "until_ms", encode({**LOOK, "shares": {}}))
    yield invalid("share", "an end without shares", "shares", encode({**LOOK, "until_ms": 1}))
    yield refused("share", "shares of who did not look", "CONFLICT", "epoch", TOLD)
    yield refused("balance", "an unknown epoch", "CONFLICT", "epoch", {**LOOK, "lease_ms": 1}, b"")
    yield invalid("balance", "notes too early", "arguments", encode({"lease_ms": 1}), b"")
    yield invalid("balance", "nothing noted", "arguments", encode({**LOOK, "lease_ms": 1}))
    yield invalid("balance", "too much", "noted", encode({**LOOK, "lease_ms": 1}), b"x" * 1048577)
    shared = {"id": "new", "shared": True}
    both = {**shared, "concurrency": 1, "rate": {"limit": 1, "period": 1}}
    for field, value in (("by", "name"), ("cost", 2), ("order", "strict")):
        yield invalid("constrain", f"shared with {field}", field, encode({**both, field: value}), encode({"name": "a"}))
    smooth = {**shared, "rate": {"limit": 1, "period": 1, "smooth": True}}
    yield invalid("constrain", "shared and smooth", "rate.smooth", encode(smooth), encode({"name": "a"}))
