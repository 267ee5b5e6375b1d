"""`keys`: who may do what by way of masters."""

from __future__ import annotations

import sys

from jqmaster.cli import show
from jqmaster.cli.options import Client, Misused, Options, Replies, asks
from jqmaster.manifest.contract import ROLES


@asks("""keys
list keys of the HTTP API; create and revoke them
Masters ask for keys once there is one, or when others than their own host can
reach them. The first is made straight on Redis:
  jqmaster keys create ann --role admin --redis URL
""")
def _list(client: Client, _options: Options) -> Replies:
    keys, now = client.keys(), show.now_ms()
    table = show.Table(
        "KEY | NAME~1 | ROLES~1 | QUEUES~2? | RATE> | CREATED | USED | EXPIRES",
        empty="there are no keys; masters that only their own host can reach ask for none",
    )
    for key in keys:
        expires = key.get("expires_ms")
        rate = f"{key['rate']:g}/s" if "rate" in key else ""
        created, used = show.when(key["created_ms"], now), show.when(key.get("used_ms"), now)
        ends = show.when(expires, now), "red" if expires is not None and expires <= now else None
        queues = ", ".join(key.get("queues", ()))
        table.add(key["id"], key["name"], ", ".join(key["roles"]), queues, rate, created, used, ends)
    yield keys, table


@asks(
    f"""keys create
create a key
Prints the key, which nobody can ask for again. Programs take it from JQ_KEY,
or from a file that JQ_KEY_FILE names.

name NAME                     whose it is; the trail has it
--role {"|".join(ROLES)}...   what it may; may be given several times
--queue NAME...               bind it to this queue, or to those that fit a pattern; may be given several times
--expires TIME                after so long: 12h, 90d
--rate RATE                   at most so many requests a second, of each master
""",
    creates=True,
)
def _create(client: Client, options: Options) -> Replies:
    if not options.role:
        raise Misused(options.parser.prog, f"--role is required: {', '.join(ROLES)}")
    made = client.create_key(options.name, options.role, queues=options.queue, ttl=options.expires, rate=options.rate)
    yield made, str(made["key"])
    if not options.json:
        print(f"key {made['id']} of {show.plain(made['name'])}; it is not shown again", file=sys.stderr)


@asks("""keys revoke
take keys away; masters refuse them at once

ids ID...  as `keys` lists them
""")
def _revoke(client: Client, options: Options) -> Replies:
    for key_id in options.ids:
        client.revoke_key(key_id)
        yield {"id": key_id}, f"revoked {key_id}"
