"""`webhooks`, and its verbs: who is told of ends of jobs."""

from __future__ import annotations

from jqmaster.cli import show, values
from jqmaster.cli.limits import matcher
from jqmaster.cli.options import Client, Options, Replies, asks


@asks("""webhooks
list who is told of ends of jobs; set and delete them
""")
def _list(client: Client, _options: Options) -> Replies:
    hooks = client.webhooks()
    table = show.Table("WEBHOOK~1 | URL~3 | ON | SECRETS> | MATCH~3?", empty="no webhooks")
    for one in hooks:
        match = values.as_json(one["match"]) if "match" in one else ""
        table.add(one["id"], one.get("url") or "", ", ".join(one.get("on", ())), str(one["secrets"]), match)
    yield hooks, table


@asks("""webhooks set
have a URL told of ends of jobs
MATCH is JSON, @FILE or -, as for constraints. Replaces a webhook of this id;
its secrets stay unless others are given. The one with the id notify has no
URL: its secrets sign what jobs ask for themselves (enqueue --notify).

id ID
target URL?                             gets a POST for each end; http or https
match MATCH?                            of which jobs: '{"name": "mail.*"}'
--on STATE...                           of this end: done, error, cancelled or skipped; may be given several times
--secrets SECRETS $JQ_WEBHOOK_SECRETS   one or two, whsec_…, better as a variable: sign with each
""")
def _set(client: Client, options: Options) -> Replies:
    match = None if options.match is None else matcher(options.match)
    secrets = list(options.secrets) if options.secrets else None
    one = client.subscribe(options.id, options.target, match, on=options.on or None, secrets=secrets)
    told = f"{one['url']} is told of {', '.join(one['on'])}" if "url" in one else "for what jobs ask for themselves"
    yield one, show.plain(f"{one['id']}: {told}, {show.counted(one['secrets'], 'secret')}")


@asks("""webhooks delete
delete webhooks; they are told nothing more

ids ID...
""")
def _delete(client: Client, options: Options) -> Replies:
    for webhook_id in options.ids:
        client.unsubscribe(webhook_id)
        yield {"deleted": webhook_id}, f"deleted {webhook_id}"
