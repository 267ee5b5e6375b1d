"""What a job can be told: each field once (docs/operations.md, NewJob).

The command line, the library, the master and the reference model read this table. Checks of the engine
(jqlua/job/jobspec.lua), what workers are told, the library's types, schemas, tables of the documentation and the forms
of the web UI are made from it by `make generate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jqmaster.manifest.contract import Argument


class Word(NamedTuple):
    """One of those that a field can be, in the order of its type; the first is the default. `label` is for the web
    UI."""

    label: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Argument):
    """As an argument of a script is; its `meaning` is one line for everybody, words of the protocol in backticks."""

    optional: bool = True
    protocol: str = ""
    """What docs/operations.md adds, as sentences; `python`: what the library's docstrings do."""
    python: str = ""
    words: tuple[Word, ...] = ()
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
    again: bool = False
    """The web UI fills it in for a job that is to be enqueued again."""
    flag: str | None = None
    """On the command line, without `--`; default: as the name. "" for none."""
    metavar: str = ""
    label: str = ""
    """In the web UI; so `unit` and `hint`."""
    unit: str = ""
    hint: str = ""

    @property
    def option(self) -> str:
        """The flag, `--retry-base`; "" where there is none."""
        flag = self.name.replace("_", "-") if self.flag is None else self.flag
        return flag and f"--{flag}"

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
        name="name", type="name", optional=False, rare=False, told=True, again=True, flag="",
        meaning="kind of job", protocol="Valid UTF-8, no control characters",
    ),
    Field(
        name="queue", type="queue", rare=False, told=True, changed=True, again=True, metavar="NAME",
        default_text="its `name`", python_default="the job's name",
        meaning="where it waits", protocol="No `*`", python="Workers choose queues",
    ),
    Field(
        name="priority", type="integer", least=-(2**31), most=2**31 - 1, default=0, rare=False, told=True,
        changed=True, again=True, meaning="smaller runs first",
        label="Priority", hint="The smaller runs first; usual: 0.",
    ),
    Field(
        name="delay", type="seconds", least=0, most=_LONGEST, rare=False, shown=False, changed=True,
        meaning="not before so long from now", protocol="`scheduled` until then",
        label="Not before", unit="s from now",
    ),
    Field(
        name="run_at", type="moment", least=0, most=_LONGEST, rare=False, shown=False, changed=True,
        meaning="not before this moment", protocol="Not together with `delay`; the past is now",
        python="A datetime with a time zone, or Unix seconds",
        label="or not before the moment",
    ),
    Field(
        name="expires_in", type="seconds", least=0.001, most=_LONGEST, rare=False, shown=False,
        meaning="not started by then, counted from enqueueing, it ends as an error",
        protocol="Reason `expired`. Only the first start counts",
        label="Expires in", hint="Not started by then, it ends as error.",
    ),
    Field(
        name="max_retry", type="integer", least=0, most=2**31 - 1, default=10, rare=False, changed=True, again=True,
        meaning="retries after the first failure", label="Retries", hint="Usual: 10.",
    ),
    Field(
        name="max_lapses", type="integer", least=0, most=2**31 - 1, default_text="a lapse spends a retry", again=True,
        meaning="lease expirations, or vanished workers, tolerated before a retry is spent",
        protocol="After one more it ends with reason `lapses`. What ran for `max_runtime` is a failure",
        python="So deploys and crashes are counted apart from failures",
        label="Lapses apart", hint="Empty: a lapse spends a retry.",
    ),
    Field(
        name="timeout", type="seconds", least=0.001, most=_LONGEST_LEASE, default=30, rare=False, told=True,
        changed=True, again=True, flag="lease",
        meaning="the lease, which heartbeats renew: how long until another worker takes over if this one dies. No "
        "bound on how long a job runs, which is `max_runtime`",
        label="Lease", hint="How long a worker may be silent; usual: 30.",
    ),
    Field(
        name="max_runtime", type="seconds", least=0.001, most=_LONGEST_LEASE, told=True, again=True,
        meaning="the most an attempt may take",
        protocol="It ends at that age with reason `timeout`, heartbeats or not",
        label="Runs at most",
    ),
    Field(
        name="keep_result", type="flag", default=False, rare=False, again=True,
        python_default="true, unless the function is annotated `-> None`", meaning="keep what the function returns",
        protocol="That is what `finish` reports",
        python="For an hour if nobody reads it, for a minute after the first read",
        label="Keep the result",
    ),
    Field(
        name="tags", type="set<name>", least=1, most=32, changed=True, again=True, flag="tag", metavar="TAG",
        meaning="to match and to find it by", protocol="See [limits](limits.md) and [finding](finding.md)",
        label="Tags", hint="With commas between.",
    ),
    Field(
        name="unique", type="name", again=True, metavar="KEY",
        meaning="while a job with this key has not ended, no other is made", protocol="See [unique keys](unique.md)",
        python="True: its name with its arguments is the key; a function of the arguments gives it",
        label="Unique key", hint="While a job with this key has not ended, no other is made.",
    ),
    Field(
        name="unique_for", type="seconds", least=0.001, most=_LONGEST, needs="unique", again=True,
        meaning="the key is kept for so long after the end as well", protocol="At most as long as the record",
        label="Keep the key after the end",
    ),
    Field(
        name="unique_within", type="seconds", least=0.001, most=_LONGEST, needs="unique", again=True,
        meaning="the key is kept for so long from enqueueing, and no longer, whatever becomes of the job",
        protocol="Not together with `unique_for`, nor with `if_exists: latest`",
        label="Keep the key from enqueueing on", hint="Instead of until the end.",
    ),
    Field(
        name="if_exists", type="keep|replace|latest", needs="unique", shown=False,
        words=(
            Word("keep that job", "nothing"),
            Word(
                "replace its argument",
                "a job that waits gets this argument and, where given, priority and time",
            ),
            Word(
                "this one runs last",
                "likewise; while that one runs, this is enqueued and starts after its end",
            ),
        ),
        meaning="what becomes of it when a job has the key", protocol="See [unique keys](unique.md)",
        python="See [unique keys](unique.md)", label="If the key is taken",
    ),
    Field(
        name="depends", type="set<reference>", least=1, most=10100, told=True, metavar="ID",
        meaning="runs when all of these are done",
        protocol="`blocked` until then (see [dependencies](dependencies.md))",
        python="Ids, handles, or calls further ahead in the same `enqueue_many`",
        label="Waits for the jobs", hint="Ids, with commas between.",
    ),
    Field(
        name="if_failed", type="wait|fail|run|only",
        words=(
            Word("wait on", "go on waiting, until that one was retried and is done"),
            Word("fail as well", "end as error, reason `dependency`"),
            Word("run all the same", "take it as done"),
            Word("run only then", "run when the rest has ended, too; where none fails it is `skipped`"),
        ),
        meaning="what becomes of it when one that it depends on fails or is cancelled", label="If one of them fails",
    ),
    Field(
        name="retry_base", type="seconds", least=0, most=_LONGEST, default_text="the queue's setting, 1 s", again=True,
        meaning="the first retry comes after so long, each next one after twice that", label="First backoff",
    ),
    Field(
        name="retry_cap", type="seconds", least=0, most=_LONGEST, again=True,
        default_text="the queue's setting, an hour",
        meaning="no retry comes later than after so long", label="Longest backoff",
    ),
    Field(
        name="retry_jitter", type="number", least=0, most=1, default_text="the queue's setting, 0.1", again=True,
        meaning="up to this part of the time to a retry is taken off at random",
        label="Jitter of backoff", hint="0 to 1.",
    ),
    Field(
        name="track", type="flag", default=False, meaning="publish each of its transitions",
        protocol="See [events](finding.md#events)",
        label="Publish its transitions",
    ),
    Field(
        name="headers", type="map<text>", most=16, told=True, passed=True, again=True, flag="",
        meaning="go with it to its worker: what is about the call and not its argument, such as `traceparent`",
        protocol="Names as a `name`; names and texts 1024 bytes in all, no control characters",
        python="`current_job.get().headers` there",
        label="Headers", hint="A map of texts, as JSON.",
    ),
    Field(
        name="notify", type="url", most=2000, again=True, metavar="URL",
        meaning="where a server tells of its end", protocol="See [webhooks](webhooks.md)",
        python="See [webhooks](webhooks.md)",
        label="Tell of its end", hint="A URL that gets a POST, http or https.",
    ),
)  # fmt: skip
