"""Exit codes, and what --help says of them."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_UNAVAILABLE = 4
EXIT_TIMEOUT = 5
EXIT_EXPIRED = 6

CODES = {
    "INVALID": EXIT_USAGE,
    "NOTFOUND": EXIT_NOT_FOUND,
    "EXPIRED": EXIT_EXPIRED,
    "UNAVAILABLE": EXIT_UNAVAILABLE,
    "VERSION": EXIT_UNAVAILABLE,
    "TIMEOUT": EXIT_TIMEOUT,
}
"""By the codes of errors; all others are EXIT_FAILED."""

EPILOG = """\
Where to ask: --url names a master (http://) or a Redis (redis://, unix://,
redis+sentinel://, redis+cluster://, with TLS rediss…), --redis a Redis.
Default: JQ_URL, then JQ_REDIS, then the master at http://127.0.0.1:8400.
A master that asks for a key gets JQ_KEY, or what --key-file names.

Every option has a variable of the environment, shown in brackets in the help
of its command; the command line wins. NO_COLOR turns colour off.

--json prints one JSON document; lists are one document a line. What JSON has
no form for is an object with one member: {"$bin": "<base64>"}, and "$ext",
"$float", "$str", "$map", "$msgpack" (docs/cli.md).

Exit codes:
  0  all well
  1  refused or failed; a job that was waited for failed; doctor found a problem
  2  wrong usage, or a value that is refused
  3  no such job, queue, constraint, schedule or worker
  4  the master or Redis cannot be reached, or cannot be used
  5  the time is up
  6  the job's result was read, or its time is over
  130, 141  interrupted; whoever read the output has gone
"""


class Refused(Exception):
    """What a command cannot do, in words for people."""

    def __init__(self, message: str, code: str = "FAILED") -> None:
        super().__init__(message)
        self.code = code
