"""What a job can be told: each field once (docs/operations.md, NewJob).

The command line, the library, the master and the reference model read this table. Checks of the engine
(jqlua/job/jobspec.lua), what workers are told, the library's types, schemas, tables of the documentation and the forms
of the web UI are made from it by `make generate`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jqmaster.manifest.contract import Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Argument):
    """As an argument of a script is; its `meaning` is one line for everybody, words of the protocol in backticks."""

    optional: bool = True
    protocol: str = ""
    """What docs/operations.md adds, as sentences; `python`: what the library's docstrings do."""
    python: str = ""
    words: tuple[str, ...] = ()
    """What each of those means that it can be; the first is the default."""
    default_text: str = ""
    """The default in words, where it is no value; `python_default` where the library has another."""
    python_default: str = ""
    needs: str = ""
    """A field without which it makes no sense."""
    rare: bool = True
    """Kept in the options part of the record: a job without it pays nothing."""
    told: bool = False
    """The worker gets it."""
    passed: bool = False
    """The engine keeps it, shows it and, where it is `told`, tells it: it means nothing to it."""
    shown: bool = True
    """It stands in the job's document as it was given."""
    changed: bool = False
    """`change` takes it as well."""

    @property
    def usual(self) -> str:
        """The default, as people read it; "" for none."""
        if self.of.words:
            return self.of.words[0]
        if self.default is None:
            return self.default_text
        if self.type == "flag":
            return str(self.default).lower()
        return f"{self.default:g}" + (" s" if self.type == "seconds" else "")


_LONGEST = 10**10
_LONGEST_LEASE = 4 * 10**6

FIELDS = (
    Field(
        name="name", type="name", optional=False, rare=False, told=True,
        meaning="kind of job", protocol="Valid UTF-8, no control characters",
    ),
    Field(
        name="queue", type="queue", rare=False, told=True, changed=True,
        default_text="its `name`", python_default="the job's name",
        meaning="where it waits", protocol="No `*`", python="Workers choose queues",
    ),
    Field(
        name="priority", type="integer", least=-(2**31), most=2**31 - 1, default=0, rare=False, told=True,
        changed=True, meaning="smaller runs first",
    ),
    Field(
        name="delay", type="seconds", least=0, most=_LONGEST, rare=False, shown=False, changed=True,
        meaning="not before so long from now", protocol="`scheduled` until then",
    ),
    Field(
        name="run_at", type="moment", least=0, most=_LONGEST, rare=False, shown=False, changed=True,
        meaning="not before this moment", protocol="Not together with `delay`; the past is now",
        python="A datetime with a time zone, or Unix seconds",
    ),
    Field(
        name="expires_in", type="seconds", least=0.001, most=_LONGEST, rare=False, shown=False,
        meaning="not started by then, counted from enqueueing, it ends as an error",
        protocol="Reason `expired`. Only the first start counts",
    ),
    Field(
        name="max_retry", type="integer", least=0, most=2**31 - 1, default=10, rare=False, changed=True,
        meaning="retries after the first failure",
    ),
    Field(
        name="max_lapses", type="integer", least=0, most=2**31 - 1, default_text="a lapse spends a retry",
        meaning="lease expirations, or vanished workers, tolerated before a retry is spent",
        protocol="After one more it ends with reason `lapses`. What ran for `max_runtime` is a failure",
        python="So deploys and crashes are counted apart from failures",
    ),
    Field(
        name="timeout", type="seconds", least=0.001, most=_LONGEST_LEASE, default=30, rare=False, told=True,
        changed=True,
        meaning="the lease, which heartbeats renew: how long until another worker takes over if this one dies. No "
        "bound on how long a job runs, which is `max_runtime`",
    ),
    Field(
        name="max_runtime", type="seconds", least=0.001, most=_LONGEST_LEASE, told=True,
        meaning="the most an attempt may take",
        protocol="It ends at that age with reason `timeout`, heartbeats or not",
    ),
    Field(
        name="keep_result", type="flag", default=False, rare=False,
        python_default="true, unless the function is annotated `-> None`", meaning="keep what the function returns",
        protocol="That is what `finish` reports",
        python="For an hour if nobody reads it, for a minute after the first read",
    ),
    Field(
        name="tags", type="set<name>", least=1, most=32, changed=True,
        meaning="to match and to find it by", protocol="See [limits](limits.md) and [finding](finding.md)",
    ),
    Field(
        name="unique", type="name",
        meaning="while a job with this key has not ended, no other is made", protocol="See [unique keys](unique.md)",
        python="True: its name with its arguments is the key; a function of the arguments gives it",
    ),
    Field(
        name="unique_for", type="seconds", least=0.001, most=_LONGEST, needs="unique",
        meaning="the key is kept for so long after the end as well", protocol="At most as long as the record",
    ),
    Field(
        name="unique_within", type="seconds", least=0.001, most=_LONGEST, needs="unique",
        meaning="the key is kept for so long from enqueueing, and no longer, whatever becomes of the job",
        protocol="Not together with `unique_for`, nor with `if_exists: latest`",
    ),
    Field(
        name="if_exists", type="keep|replace|latest", needs="unique", shown=False,
        words=(
            "nothing",
            "a job that waits gets this argument and, where given, priority and time",
            "likewise; while that one runs, this is enqueued and starts after its end",
        ),
        meaning="what becomes of it when a job has the key", protocol="See [unique keys](unique.md)",
        python="See [unique keys](unique.md)",
    ),
    Field(
        name="depends", type="set<reference>", least=1, most=10100, told=True,
        meaning="runs when all of these are done",
        protocol="`blocked` until then (see [dependencies](dependencies.md))",
        python="Ids, handles, or calls further ahead in the same `enqueue_many`",
    ),
    Field(
        name="if_failed", type="wait|fail|run|only",
        words=(
            "go on waiting, until that one was retried and is done",
            "end as error, reason `dependency`",
            "take it as done",
            "run when the rest has ended, too; where none fails it is `skipped`",
        ),
        meaning="what becomes of it when one that it depends on fails or is cancelled",
    ),
    Field(
        name="retry_base", type="seconds", least=0, most=_LONGEST, default_text="the queue's setting, 1 s",
        meaning="the first retry comes after so long, each next one after twice that",
    ),
    Field(
        name="retry_cap", type="seconds", least=0, most=_LONGEST,
        default_text="the queue's setting, an hour",
        meaning="no retry comes later than after so long",
    ),
    Field(
        name="retry_jitter", type="number", least=0, most=1, default_text="the queue's setting, 0.1",
        meaning="up to this part of the time to a retry is taken off at random",
    ),
    Field(
        name="track", type="flag", default=False, meaning="publish each of its transitions",
        protocol="See [events](finding.md#events)",
    ),
    Field(
        name="headers", type="map<text>", most=16, told=True, passed=True,
        meaning="go with it to its worker: what is about the call and not its argument, such as `traceparent`",
        protocol="Names as a `name`; names and texts 1024 bytes in all, no control characters",
        python="`current_job.get().headers` there",
    ),
    Field(
        name="notify", type="url", most=2000,
        meaning="where a server tells of its end", protocol="See [webhooks](webhooks.md)",
        python="See [webhooks](webhooks.md)",
    ),
)  # fmt: skip
