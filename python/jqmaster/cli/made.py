"""Commands for operations that only read, and of which the table says all.

Made from manifest/operations.py by `make generate`.
"""

from __future__ import annotations

from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.telling import told


@asks("""trail
what operators changed, newest first

--limit N=50  at most so many
""")
def _trail(client: Client, options: Options) -> Replies:
    yield told(
        client.trail(),
        "WHEN=time_ms | WHO~1=actor | WHAT=what | ON~1=on | JOBS>=count | CHANGE~2=change",
        "nobody has changed anything that is still told",
        limit=options.limit,
    )
