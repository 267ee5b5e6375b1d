"""`queues`, and its verbs: look at queues, pause, limit, empty and forget them."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, Several, choice, command, duration, reach, verbs, whole
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, Refused

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client


RATE_MINUTES = 5
_WEIGHTS = 10
WAITING = ("queued", "scheduled", "blocked", "retrying")
_LIST = f"""\
IN/MIN and DONE/MIN are means of the last {RATE_MINUTES} minutes."""

_SET = """\
Settings are those of `jqmaster config` that a queue may have of its own, and
fair: who takes turns, such as fair=argument.customer, or with weights
fair='[{"by": "argument.customer", "weights": {"acme": 3}}]'; fair= ends it."""


def add(commands: Any) -> None:
    parser = reach(command(commands, "queues", _list, "list queues; pause, limit, empty, forget them", _LIST))
    under = verbs(parser)
    shown = reach(command(under, "show", _show, "show a queue's counts and settings"), nested=True)
    shown.add_argument("queue", metavar="NAME")
    for name, text in (("pause", "start no more jobs of queues"), ("resume", "start jobs of queues again")):
        verb = reach(command(under, name, _pause, text, "* stands for any run of characters."), nested=True)
        verb.set_defaults(paused=name == "pause")
        verb.add_argument("queues", metavar="NAME", nargs="+")
    limit = reach(command(under, "limit", _limit, "refuse jobs of a queue when so many wait"), nested=True)
    limit.add_argument("queue", metavar="NAME")
    limit.add_argument("max_waiting", metavar="N", type=whole(0, 2**31 - 1), help="0: no limit")
    own = reach(command(under, "set", _set, "give a queue settings of its own, or share it fairly", _SET), nested=True)
    own.add_argument("queue", metavar="NAME")
    own.add_argument("settings", metavar="SETTING=VALUE", nargs="+", help="SETTING= takes it away")
    for verb in (limit, own):
        verb.option("--new", action="store_true", help="also for a queue that is not there yet")
    purge = reach(command(under, "purge", _purge, "discard the jobs of a queue that wait"), nested=True)
    purge.add_argument("queue", metavar="NAME")
    purge.option(
        "--status", action=Several, type=choice(*(one for one in show.STATES if one != "running")),
        metavar="STATE", help="jobs in this state instead; may be given several times",
    )  # fmt: skip
    purge.option("--yes", "-y", action="store_true", help="do not ask")
    forget = reach(command(under, "forget", _forget, "take away queues that have no jobs"), nested=True)
    forget.add_argument("queues", metavar="NAME", nargs="+")
    kick = reach(command(under, "kick", _kick, "take a queue's running jobs from their workers"), nested=True)
    kick.add_argument("queue", metavar="NAME")
    kick.option("--delay", type=duration, metavar="TIME", help="they start again after so long")


def rates(client: Client, now: int) -> dict[str, tuple[float, float]]:
    """By queue: jobs enqueued and jobs done, a minute."""
    begin = (now // 60_000 - RATE_MINUTES) * 60_000
    minutes = (now - begin) / 60_000
    sums: dict[str, tuple[float, float]] = {}
    for one in client.series("minute", from_ms=begin):
        came, went = sums.get(one["queue"], (0.0, 0.0))
        sums[one["queue"]] = came + one["enqueued"] / minutes, went + (one["done"] + one["moved"]) / minutes
    return sums


def _list(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        queues = client.queues()
        rated = rates(client, show.now_ms())
    if options.json:
        for queue in queues:
            came, went = rated.get(queue["name"], (0.0, 0.0))
            values.print_json({**queue, "enqueued_per_minute": round(came, 3), "done_per_minute": round(went, 3)})
        return EXIT_OK
    table(queues, rated).print("no queues yet; they come with their first job")
    return EXIT_OK


def table(queues: list[dict[str, Any]], rated: dict[str, tuple[float, float]]) -> show.Table:
    """The queues, as people see them; also in `top`."""
    titles = ("QUEUED", "SCHED", "BLOCKED", "RETRY", "RUN", "DONE", "ERROR", "CANCEL")
    counts = [show.Column(title, right=True) for title in titles]
    made = show.Table(
        [show.Column("QUEUE", shrinks=1), *counts, show.Column("IN/MIN", right=True),
         show.Column("DONE/MIN", right=True), show.Column("", colour="yellow")]
    )  # fmt: skip
    for queue in queues:
        came, went = rated.get(queue["name"], (0.0, 0.0))
        cells = [(show.some(queue[one]), show.OF_STATE.get(one)) for one in show.STATES]
        full = queue["max_waiting"] and sum(queue[one] for one in WAITING) >= queue["max_waiting"]
        marks = [mark for mark, is_so in (("paused", queue["paused"]), ("full", full)) if is_so]
        made.add(queue["name"], *cells, show.per_minute(came), show.per_minute(went), " ".join(marks))
    return made


def _show(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        queue = client.queue_there(options.queue)
    return _print_queue(options, queue)


def _print_queue(options: argparse.Namespace, queue: dict[str, Any]) -> int:
    if options.json:
        values.print_json(queue)
        return EXIT_OK
    fair = ", then ".join(map(_level, queue.get("fair") or []))
    show.facts(
        [("queue", queue["name"]), ("paused", ("yes", "yellow") if queue["paused"] else "no"),
         ("most waiting", show.count(queue["max_waiting"]) if queue["max_waiting"] else "no limit"),
         ("shared by", fair)]
        + [(name, f"{value:g} (own setting)") for name, value in (queue.get("settings") or {}).items()]
        + [(state, (show.count(queue[state]), show.OF_STATE.get(state))) for state in show.STATES]
    )  # fmt: skip
    return EXIT_OK


def _level(level: dict[str, Any]) -> str:
    """`argument.customer (acme 3, bob 0.5)`."""
    weights = [f"{value} {weight:g}" for value, weight in (level.get("weights") or {}).items()]
    more = f", … {len(weights) - _WEIGHTS} more" if len(weights) > _WEIGHTS else ""
    return f"{level['by']} ({', '.join(weights[:_WEIGHTS])}{more})" if weights else str(level["by"])


def _pause(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for name in _matching(client, options.queues):
            queue = client.queue(name, paused=options.paused)
            if options.json:
                values.print_json(queue)
                continue
            waiting = queue["queued"]
            then = f"; {show.counted(waiting, 'job')} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
            print(f"{show.plain(name)} {'is paused' if options.paused else 'goes on'}{then}")
    return EXIT_OK


def _matching(client: Client, names: list[str]) -> list[str]:
    """Names as they are, and those that fit a pattern. Raises Refused where there is none."""
    known = [queue["name"] for queue in client.queues()]
    found: list[str] = []
    for name in names:
        fitting = [one for one in known if fnmatch.fnmatchcase(one, name.replace("[", "[[]").replace("?", "[?]"))]
        if not fitting:
            raise Refused(f"no such queue: {name}", EXIT_NOT_FOUND, "NOTFOUND")
        found += [one for one in fitting if one not in found]
    return found


def _limit(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        _check_there(client, options)
        queue = client.queue(options.queue, max_waiting=options.max_waiting)
    if options.json:
        return _print_queue(options, queue)
    if options.max_waiting:
        print(f"{show.plain(options.queue)} takes jobs while fewer than {show.count(options.max_waiting)} wait")
    else:
        print(f"{show.plain(options.queue)} has no limit")
    return EXIT_OK


def _set(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.cli.settings import assignments

    turns = [text for text in options.settings if text.startswith("fair=")]
    given = assignments([text for text in options.settings if text not in turns])
    fair = _fair(turns[-1].removeprefix("fair=")) if turns else None
    with open_client(options) as client:
        _check_there(client, options)
        queue = client.queue(
            options.queue,
            fair=fair,
            set={name: value for name, value in given.items() if value is not None} or None,
            unset=[name for name, value in given.items() if value is None] or None,
        )
    return _print_queue(options, queue)


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
        raise Refused(
            """fair: expected a path, or levels such as '[{"by": "argument.customer"}]'""",
            EXIT_USAGE, "INVALID",
        )  # fmt: skip
    return list(levels)


def _check_there(client: Client, options: argparse.Namespace) -> None:
    """Raises Refused for a queue that is not there: most likely a slip of the finger."""
    from jqmaster.errors import NotFound

    try:
        client.queue_there(options.queue)
    except NotFound:
        if not options.new:
            raise Refused(
                f"no such queue: {options.queue}; with --new it is made", EXIT_NOT_FOUND, "NOTFOUND"
            ) from None


def _purge(options: argparse.Namespace, _parser: Parser) -> int:
    states = options.status or list(WAITING)
    with open_client(options) as client:
        queue = client.queue_there(options.queue)
        total = sum(queue[state] for state in states)
        if total and not options.yes and not _agreed(options.queue, total, states):
            return EXIT_FAILED
        purged = client.discard_where(queue=options.queue, status=states)
    if options.json:
        values.print_json({"changed": purged})
    else:
        print(f"discarded {show.counted(purged, 'job')} of {show.plain(options.queue)}")
    return EXIT_OK


def _agreed(queue: str, total: int, states: list[str]) -> bool:
    text = f"{show.counted(total, 'job')} of {show.plain(queue)} ({', '.join(states)})"
    if not sys.stdin.isatty():
        raise Refused(f"nobody can be asked: give --yes to discard {text}", EXIT_USAGE, "INVALID")
    print(f"discard {text}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _forget(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for name in options.queues:
            client.forget(name)
            if options.json:
                values.print_json({"forgotten": name})
            else:
                print(f"forgot {show.plain(name)}")
    return EXIT_OK


def _kick(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        kicked = client.kick_queue(options.queue, delay=options.delay)
    if options.json:
        values.print_json({"changed": kicked})
    else:
        print(f"kicked {show.counted(kicked, 'job')} of {show.plain(options.queue)}")
    return EXIT_OK
