"""`queues`, and its verbs: look at queues, pause, limit, empty and forget them."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import agreed
from jqmaster.cli.settings import assignments
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Refused
from jqmaster.errors import NotFound

RATE_MINUTES = 5
_WEIGHTS = 10
WAITING = ("queued", "scheduled", "blocked", "retrying")


def standings(client: Client) -> dict[str, dict[str, Any]]:
    """By name: queues with how they did in the last minutes."""
    return {queue["name"]: queue for queue in client.queues(minutes=RATE_MINUTES)}


def rates(queue: dict[str, Any]) -> tuple[float, float]:
    """Jobs enqueued and jobs done, a minute."""
    recent = queue.get("recent")
    if not recent:
        return 0.0, 0.0
    minutes = recent["span_ms"] / 60_000
    return recent["enqueued"] / minutes, (recent["done"] + recent["moved"]) / minutes


@asks(
    f"""queues
list queues; pause, limit, empty, forget them
IN/MIN and DONE/MIN are means of the last {RATE_MINUTES} minutes, EMPTY IN is when none is
queued if all goes on like that, WHY is why the oldest waits.

--sort COLUMN=name  by name, or the worst first: oldest, cause, net, empties, wait, run, …
"""
)
def _list(client: Client, options: Options) -> Replies:
    # In order of name there are all of them; the others are of the first.
    if options.sort == "name":
        queues, more = list(standings(client).values()), ""
    else:
        found = client.ranking(options.sort, minutes=RATE_MINUTES, count=1000)
        queues = found["queues"]
        over = found["total"] - len(queues)
        more = f"… and {show.counted(over, 'queue')} more" if over else ""
        if found["more"]:
            more += f"; {show.count(found['looked'])} were looked at, and there are others"
            more += ": the master still counts" if found["counting"] else ""
    documents = []
    for queue in queues:
        came, went = rates(queue)
        documents.append({**queue, "enqueued_per_minute": round(came, 3), "done_per_minute": round(went, 3)})
    made = table(queues)
    made.more = more
    yield documents, made


def table(queues: list[dict[str, Any]]) -> show.Table:
    """The queues with how they do, as people see them."""
    columns = (
        "QUEUE~1|QUEUED>|OLDEST>|EMPTY IN>|SCHED>|BLOCKED>|RETRY>|RUN>|DONE>|ERROR>|CANCEL>|SKIP>|IN/MIN>|DONE/MIN>|"
        "WHY~2:yellow"
    )
    made = show.Table(columns, empty="no queues yet; they come with their first job")
    now = show.now_ms()
    for queue in queues:
        came, went = rates(queue)
        queued, *cells = [(show.some(queue[one]), show.OF_STATE.get(one)) for one in show.STATES]
        made.add(
            queue["name"], queued, _age(queue, now), _empties(queue), *cells,
            show.per_minute(came), show.per_minute(went), why(queue),
        )  # fmt: skip
    return made


def narrow_table(queues: list[dict[str, Any]]) -> show.Table:
    """The same on 80 columns: what waits for its time or for others is LATER, and of rates there is how it grows."""
    columns = "QUEUE~1|QUEUED>|OLDEST>|LATER>|RUN>|ERROR>:red|DONE/MIN>|NET/MIN>|WHY~1:yellow"
    made = show.Table(columns, empty="no queues yet; they come with their first job")
    now = show.now_ms()
    for queue in queues:
        came, went = rates(queue)
        later = show.some(sum(queue[one] for one in WAITING[1:]))
        net = show.per_minute(abs(came - went))
        made.add(
            queue["name"], show.some(queue["queued"]), _age(queue, now), later, show.some(queue["running"]),
            show.some(queue["error"]), show.per_minute(went), net and f"{'+' if came > went else '−'}{net}", why(queue),
        )  # fmt: skip
    return made


def why(queue: dict[str, Any]) -> str:
    """Why the oldest ready job waits, and what else keeps jobs from coming or going."""
    full = queue["max_waiting"] and sum(queue[one] for one in WAITING) >= queue["max_waiting"]
    said = ["paused"] if queue["paused"] else []
    if queue.get("cause") == "constraint":
        said.append(f"held by {', '.join(queue['held_by'])}")
    elif queue.get("cause") not in (None, "paused"):
        said.append({"slow": "too slow"}.get(queue["cause"], queue["cause"]))
    return ", ".join([*said, *(["full"] if full else [])])


def _age(queue: dict[str, Any], now: int) -> str:
    """For how long the oldest ready job has waited; "" where none is ready."""
    since_ms = queue.get("oldest_ready_ms")
    return "" if since_ms is None else show.coarse(max(0, now - since_ms) // 1000)


def _empties(queue: dict[str, Any]) -> str:
    """As far as the last minutes tell. With more coming than going, nobody knows whether that goes on."""
    if queue.get("empties_ms") is not None:
        return show.coarse(queue["empties_ms"] / 1000)
    if not queue["queued"] or not queue.get("cause"):
        return ""
    recent = queue.get("recent") or {}
    went = sum(recent.get(kind, 0) for kind in ("done", "error", "cancelled", "moved"))
    return "growing" if recent.get("enqueued", 0) > went else "never"


def _facts(queue: dict[str, Any]) -> None:
    show.facts(
        {
            "queue": queue["name"],
            "paused": ("yes", "yellow") if queue["paused"] else "no",
            "oldest ready": show.both(queue.get("oldest_ready_ms")),
            "why": (why(queue), "yellow"),
            "held": _held(queue.get("held")),
            "workers": show.some(queue.get("workers") or 0),
            "empty in": _empties(queue),
            **{f"{kind} p50, p95, p99": _times(queue, kind) for kind in ("wait", "run")},
            "most waiting": show.count(queue["max_waiting"]) if queue["max_waiting"] else "no limit",
            "shared by": ", then ".join(map(_level, queue.get("fair") or [])),
            **{name: f"{_setting(value)} (own setting)" for name, value in (queue.get("settings") or {}).items()},
            **{state: (show.count(queue[state]), show.OF_STATE.get(state)) for state in show.STATES},
        }
    )


def _held(held: dict[str, Any] | None) -> str:
    """`3 of 7 looked at: api 2, erp 1`."""
    if not held or not held["jobs"]:
        return ""
    by = ", ".join(f"{one['id']} {show.count(one['jobs'])}" for one in held["by"])
    return f"{show.count(held['jobs'])} of the first {show.count(held['looked'])}: {by}"


def _times(queue: dict[str, Any], kind: str) -> str:
    times = queue.get("recent", {}).get(kind)
    return ", ".join(show.milliseconds(times[at]) for at in ("p50", "p95", "p99")) if times else ""


def _setting(value: float | str) -> str:
    return show.plain(value) if isinstance(value, str) else f"{value:g}"


def _level(level: dict[str, Any]) -> str:
    """`argument.customer (acme 3, bob 0.5)`."""
    weights = [f"{value} {weight:g}" for value, weight in (level.get("weights") or {}).items()]
    more = f", … {len(weights) - _WEIGHTS} more" if len(weights) > _WEIGHTS else ""
    return f"{level['by']} ({', '.join(weights[:_WEIGHTS])}{more})" if weights else str(level["by"])


@asks("""queues show
show a queue's counts and settings

queue NAME
""")
def _show(client: Client, options: Options) -> Replies:
    found = client.ask(lambda it: it.queues([options.queue], minutes=RATE_MINUTES, held=1000)).documents
    if not found:
        raise Refused(f"no such queue: {options.queue}", "NOTFOUND")
    yield found[0], lambda: _facts(found[0])


@asks("""queues pause
start no more jobs of queues
* stands for any run of characters.

queues NAME...
""")
@asks("""queues resume
start jobs of queues again
* stands for any run of characters.

queues NAME...
""")
def _pause(client: Client, options: Options) -> Replies:
    paused = options.verb == "pause"
    for name in _matching(client, options.queues):
        queue = client.queue(name, paused=paused)
        jobs = show.counted(queue["queued"], "job waits", "jobs wait")
        yield queue, f"{name} {'is paused' if paused else 'goes on'}" + (f"; {jobs}" if queue["queued"] else "")


def _matching(client: Client, names: list[str]) -> list[str]:
    """Names as they are, and those that fit a pattern. Raises Refused where there is none."""
    known = [queue["name"] for queue in client.queues()]
    found: list[str] = []
    for name in names:
        fitting = [one for one in known if fnmatch.fnmatchcase(one, name.replace("[", "[[]").replace("?", "[?]"))]
        if not fitting:
            raise Refused(f"no such queue: {name}", "NOTFOUND")
        found += [one for one in fitting if one not in found]
    return found


@asks("""queues limit
refuse jobs of a queue when so many wait

queue NAME
max_waiting N(0..2147483647)  0: no limit
--new                         also for a queue that is not there yet
""")
def _limit(client: Client, options: Options) -> Replies:
    _check_there(client, options)
    queue = client.queue(options.queue, max_waiting=options.max_waiting)
    takes = f"takes jobs while fewer than {show.count(options.max_waiting)} wait"
    yield queue, f"{options.queue} {takes if options.max_waiting else 'has no limit'}"


@asks("""queues set
give a queue settings of its own, or share it fairly
Settings are those of `jqmaster config` that a queue may have of its own, and
fair: who takes turns, such as fair=argument.customer, or with weights
fair='[{"by": "argument.customer", "weights": {"acme": 3}}]'; fair= ends it.

queue NAME
settings SETTING=VALUE...  SETTING= takes it away
--new                      also for a queue that is not there yet
""")
def _set(client: Client, options: Options) -> Replies:
    turns = [text for text in options.settings if text.startswith("fair=")]
    given = assignments([text for text in options.settings if text not in turns])
    fair = _fair(turns[-1].removeprefix("fair=")) if turns else None
    _check_there(client, options)
    queue = client.queue(
        options.queue,
        fair=fair,
        set={name: value for name, value in given.items() if value is not None} or None,
        unset=[name for name, value in given.items() if value is None] or None,
    )
    yield queue, lambda: _facts(queue)


def _fair(text: str) -> list[Any]:
    """Levels, as the engine takes them. Raises Refused."""
    if not text:
        return []
    if text[0] not in "[{":
        return [{"by": text}]
    levels = values.parsed(text, "fair")
    if isinstance(levels, dict):
        levels = [levels]
    if not all(isinstance(level, dict) for level in levels):
        raise Refused("""fair: expected a path, or levels such as '[{"by": "argument.customer"}]'""", "INVALID")
    return list(levels)


def _check_there(client: Client, options: Options) -> None:
    """Raises Refused for a queue that is not there: most likely a slip of the finger."""
    try:
        client.there("queues", options.queue)
    except NotFound:
        if not options.new:
            raise Refused(f"no such queue: {options.queue}; with --new it is made", "NOTFOUND") from None


@asks("""queues purge
discard the jobs of a queue that wait
It goes on at the masters when this command is ended: see `jqmaster bulks`.

queue NAME
--status IDLE...  jobs in this state instead; may be given several times
--yes -y          do not ask
""")
def _purge(client: Client, options: Options) -> Coded:
    states = options.status or list(WAITING)
    queue = client.there("queues", options.queue)
    total = sum(queue[state] for state in states)
    text = f"discard {show.counted(total, 'job')} of {show.plain(options.queue)} ({', '.join(states)})"
    if total and not options.yes and not agreed(text, refusal=text):
        return EXIT_FAILED
    bulk = client.begin_bulk("discard", {"queue": options.queue, "status": states}, total=total)
    with Progress("discarding", total) as progress:
        last = 0

        def said(now: Mapping[str, Any]) -> None:
            nonlocal last
            progress.add(now["changed"] - last)
            last = now["changed"]

        bulk = client.follow_bulk(bulk, said)
    purged = bulk["changed"]
    yield {"changed": purged, "bulk": bulk["id"]}, f"discarded {show.counted(purged, 'job')} of {options.queue}"
    if bulk.get("problem"):
        raise Refused(bulk["problem"])
    return EXIT_OK if not bulk["stopped"] else EXIT_FAILED


@asks("""queues forget
take away queues that have no jobs

queues NAME...
""")
def _forget(client: Client, options: Options) -> Replies:
    for name in options.queues:
        client.forget(name)
        yield {"forgotten": name}, f"forgot {name}"


@asks("""queues kick
take a queue's running jobs from their workers

queue NAME
--delay TIME  they start again after so long
""")
def _kick(client: Client, options: Options) -> Replies:
    kicked = client.kick_queue(options.queue, delay=options.delay)
    yield {"changed": kicked}, f"kicked {show.counted(kicked, 'job')} of {options.queue}"
