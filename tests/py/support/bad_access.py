"""Wrong keys of the HTTP API, and who is said to call."""

from bad_values import NAMES, NOT_TEXT, RUNNING, WAITING, encode, integers, numbers, show

KEY, DIGEST = "0123456789ab", "ab" * 32
KEY_IDS = [*NOT_TEXT, "", KEY[:11], KEY + "0", KEY.upper(), KEY[:11] + "\n"]
ROLES = [5, True, "viewer", {"a": 1}, [], ["viewer", "pusher", "worker", "operator", "admin", "viewer"]]
FIELDS = {
    "id": KEY_IDS, "name": [*NAMES, "x" * 101], "digest": [*NOT_TEXT, "", DIGEST.upper(), DIGEST + "0"],
    "roles": ROLES, "queues": [5, True, "x", {"a": 1}, [], ["a"] * 101], "ttl": numbers(1, 1e10),
    "rate": numbers(0.001, 1e6),
}  # fmt: skip
NEW = {"id": KEY, "digest": DIGEST, "name": "n", "roles": ["viewer"]}
ACTORS = [*NAMES, "x" * 101]
MOMENTS = {"from_ms": numbers(0, 10**15), "to_ms": numbers(0, 10**15)}
PAGE = {"cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}


def targets(target):
    return [
        target("key", "grant", NEW, FIELDS, ["id", "digest", "name", "roles"]),
        target("key", "revoke", {"id": KEY}, {"id": NAMES}, ["id"]),
        target("keys", "keys", {}, {**PAGE, "digests": [0, 1, 1.5, "true", "", [], {"a": True}]}, []),
        target("keys", "touch", {"ids": [KEY]}, {"ids": [5, True, "x", {"a": 1}, [], [KEY] * 1001]}, ["ids"]),
        target(
            "trail",
            "trail",
            {},
            {
                **PAGE,
                "cursor": [5, True, [], {"a": 1}, "x", RUNNING.upper()],
                "who": NAMES,
                "what": NAMES,
                "on": NAMES,
            },
            [],
        ),
        target("mark", "mark", {"text": "v2"}, {"text": NAMES, "time_ms": numbers(0, 10**15)}, ["text"]),
        target("marks", "marks", {}, {**PAGE, "cursor": [*PAGE["cursor"], "x", "0" * 13], **MOMENTS}, []),
        *(target("actor", script, spec, {"actor": ACTORS}, []) for script, spec in ACTED.items()),
    ]


ACTED = {
    "cancel": {"ids": [WAITING]}, "config": {}, "queue": {"name": "a"}, "kick": {"ids": [RUNNING]},
    "retry": {"ids": [WAITING]}, "discard": {"ids": [WAITING]}, "grant": NEW,
    "mark": {"text": "v2"},
}  # fmt: skip


def of_access(invalid, refused):
    for wrong in (5, "x", "root", "viewer pusher", ""):
        yield invalid("grant", f"role {show(wrong)}", "roles[1]", encode({**NEW, "roles": ["viewer", wrong]}))
    yield invalid("grant", "a role twice", "roles[1]", encode({**NEW, "roles": ["viewer", "viewer"]}))
    for wrong in ("", 5, "a\0", "x" * 256):
        yield invalid("grant", f"queue {show(wrong)}", "queues[1]", encode({**NEW, "queues": ["a", wrong]}))
    yield invalid("touch", "an id twice", "ids[1]", encode({"ids": [KEY, KEY]}))
    yield refused("revoke", "unknown", "NOTFOUND", "id", {"id": KEY})
    yield refused("grant", "another of a known id", "CONFLICT", "id", {**NEW, "id": "00000000000a"})
    for script, spec, more in (
        ("constrain", {"id": "new", "concurrency": 1}, encode({"name": "a"})),
        ("schedule", {"id": "new", "every": 1, "job": {"name": "a"}}, b"\xc0"),
    ):
        yield invalid(script, "a long actor", "actor", encode({**spec, "actor": "x" * 101}), more)
