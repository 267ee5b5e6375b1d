"""What all parts of the model use: names of states, defaults, how the engine and the model are compared."""

from collections import namedtuple
from fnmatch import fnmatchcase

STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
ENDED = ("done", "error", "cancelled", "skipped")
WAITING = ("queued", "scheduled", "blocked", "retrying")
DEFAULTS = {
    "retry_base": 1, "retry_cap": 3600, "retry_jitter": 0.1, "result_ttl": 3600, "result_grace": 60,
    "request_ttl": 600, "done_ttl": 86400, "done_max": 10000, "error_ttl": 2592000, "error_max": 10000,
    "cancelled_ttl": 86400, "cancelled_max": 10000, "cancel_running": True, "worker_ttl": 30,
    "events_max": 0, "stats": True, "trail_max": 10000,
    "late_after": 10,
}  # fmt: skip
WEBHOOKS = "jq.webhooks"  # the queue of notifications
ALL = ["*", WEBHOOKS]
SWEEP = 100  # steps a pick or an assign takes before it chooses
DEAR = 20  # so many a call takes at least, however much they cost

ErrorReply = namedtuple("ErrorReply", "code path message")


class SomeText(str):
    """Equal to any text: what the engine says about a failure of its own finding."""

    def __eq__(self, other):
        return isinstance(other, str) and other != ""

    __hash__ = None


SOME_TEXT = SomeText()
# How an attempt ended -> the event of its history.
EVENTS = {"success": "done", "failure": "failed", "lapse": "lapsed", "cancel": "cancelled"}


class Mismatch(AssertionError):
    """The engine's reply is not one the protocol allows."""

    def __init__(self, what, *details):
        super().__init__(what + "".join(f"\n    {detail!r}" for detail in details))
        self.details = details


class Refused(Exception):
    """The model refuses; the engine must have answered with this code and path, and changed nothing."""


def expect(condition, what, *details):
    if not condition:
        raise Mismatch(what, *details)


def same(reply, expected, what):
    expect(reply == expected, f"{what}: got, expected", reply, expected)


def listed(documents, known, wanted, field="id"):
    """Checks which documents a listing has: of all that are known, in order of their names; or of those that are
    wanted, in the order that was asked for."""
    expected = sorted(known, key=str.encode) if wanted is None else [name for name in wanted if name in known]
    same([document[field] for document in documents], expected, "which are listed")


def ms(seconds):
    return round(seconds * 1000)


def entries(queues):
    return [queues] if isinstance(queues, str) else list(queues)


def matches(entry, queue):
    if queue == WEBHOOKS:  # no pattern means it
        return entry == queue
    return fnmatchcase(queue, entry.replace("[", "[[]").replace("?", "[?]"))


def refuse(reply, *errors):
    """Refuses with whichever of these errors the engine has found."""
    if errors:
        found = [error for error in errors if isinstance(reply, ErrorReply) and reply[:2] == error]
        raise Refused(*(found or errors)[0])


def there(name, known, path="id"):
    """Refuses what is not known."""
    if name not in known:
        raise Refused("NOTFOUND", path)
