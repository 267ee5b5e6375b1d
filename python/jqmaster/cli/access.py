"""`keys` and `trail`: who may do what by way of masters, and who did."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, Several, choice, command, duration, positive, reach, verbs
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK
from jqmaster.wire.operation import ROLES

_KEYS = """\
Masters ask for keys once there is one, or when others than their own host can
reach them. The first is made straight on Redis:
  jqmaster keys create ann --role admin --redis URL"""
_CREATE = """\
Prints the key, which nobody can ask for again. Programs take it from JQ_KEY,
or from a file that JQ_KEY_FILE names."""
_TRAIL = """\
By way of a master it has the names of keys; straight on Redis user and host."""


def add(commands: Any) -> None:
    parser = reach(command(commands, "keys", _list, "list keys of the HTTP API; create and revoke them", _KEYS))
    under = verbs(parser)
    create = reach(command(under, "create", _create, "create a key", _CREATE), nested=True)
    create.add_argument("name", metavar="NAME", help="whose it is; the trail has it")
    create.option(
        "--role", action=Several, type=choice(*ROLES), metavar="ROLE", required=True,
        help=f"{', '.join(ROLES)}; may be given several times",
    )  # fmt: skip
    create.option(
        "--queue", action=Several, metavar="NAME",
        help="bind it to this queue, or to those that fit a pattern; may be given several times",
    )  # fmt: skip
    create.option("--expires", type=duration, metavar="TIME", help="after so long: 12h, 90d")
    create.option("--rate", type=float, metavar="N", help="at most so many requests a second, of each master")
    revoke = reach(command(under, "revoke", _revoke, "take keys away; masters refuse them at once"), nested=True)
    revoke.add_argument("ids", metavar="ID", nargs="+", help="as `keys` lists them")
    trail = reach(command(commands, "trail", _trail, "list what operators changed, newest first", _TRAIL))
    trail.option("--limit", type=positive, default=50, metavar="N", help="at most so many (default: %(default)s)")


def _create(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options, creates=True) as client:
        made = client.create_key(
            options.name, options.role, queues=options.queue, ttl=options.expires, rate=options.rate
        )
    if options.json:
        values.print_json(made)
        return EXIT_OK
    print(made["key"])
    print(f"key {made['id']} of {show.plain(made['name'])}; it is not shown again", file=sys.stderr)
    return EXIT_OK


def _list(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        keys = client.keys()
    if options.json:
        values.print_lines(keys)
        return EXIT_OK
    now = show.now_ms()
    table = show.Table(
        [show.Column("KEY"), show.Column("NAME", shrinks=1), show.Column("ROLES", shrinks=1),
         show.Column("QUEUES", shrinks=2, optional=True), show.Column("RATE", right=True), show.Column("CREATED"),
         show.Column("USED"), show.Column("EXPIRES")]
    )  # fmt: skip
    for key in keys:
        expires = key.get("expires_ms")
        table.add(
            key["id"], key["name"], ", ".join(key["roles"]), ", ".join(key.get("queues", ())),
            f"{key['rate']:g}/s" if "rate" in key else "", show.when(key["created_ms"], now),
            show.when(key.get("used_ms"), now),
            (show.when(expires, now), "red" if expires is not None and expires <= now else None),
        )  # fmt: skip
    table.print("there are no keys; masters that only their own host can reach ask for none")
    return EXIT_OK


def _revoke(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        for key_id in options.ids:
            client.revoke_key(key_id)
            if options.json:
                values.print_json({"id": key_id})
            else:
                print(f"revoked {key_id}")
    return EXIT_OK


def _trail(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        entries = list(islice(client.trail(), options.limit))
    if options.json:
        values.print_lines(entries)
        return EXIT_OK
    now = show.now_ms()
    table = show.Table(
        [show.Column("WHEN"), show.Column("WHO", shrinks=1), show.Column("WHAT"), show.Column("ON", shrinks=1),
         show.Column("JOBS", right=True), show.Column("CHANGE", shrinks=2)]
    )  # fmt: skip
    for entry in entries:
        change = entry.get("change")
        table.add(
            show.when(entry["time_ms"], now), entry["actor"], entry["what"], entry.get("on", ""),
            show.count(entry["count"]) if "count" in entry else "",
            json.dumps(change, ensure_ascii=False, default=str) if change else "",
        )  # fmt: skip
    table.print("nobody has changed anything that is still told")
    return EXIT_OK
