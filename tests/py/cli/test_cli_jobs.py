"""Commands about jobs, as their user sees them: text and --json, exit codes, wrong input."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from cli_support import Cli, call, cli_, straight, work  # noqa: F401 (fixtures)
from jqmaster.cli import show
from jqmaster.manifest.fields import FIELDS

NOBODY = "0687f9809acc00"


def test_enqueue_prints_the_id_and_job_shows_all(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "mail", '{"to": "ann"}', "--priority", "-5", "--tag", "a", "--tag", "b").out.strip()
    text = cli_.ok("job", job_id).out
    assert all(
        re.search(line, text, re.M) for line in (r"^status +queued$", r'^argument +\{"to":"ann"\}$', r"^tags +a, b$")
    )
    shown = cli_.ok("job", job_id, "--json").document
    assert (shown["id"], shown["priority"], shown["argument"]) == (job_id, -5, {"to": "ann"})


def test_each_field_of_a_job_has_an_option(cli_: Cli) -> None:
    said = cli_.run("enqueue", "--help").out
    flags = {"name": "", "headers": "", "timeout": "--lease", "tags": "--tag"}
    options = (flags.get(field.name, f"--{field.name.replace('_', '-')}") for field in FIELDS)
    assert [option for option in options if option not in said] == []
    before = cli_.ok("enqueue", "a").out.strip()
    options = "--delay 2h --lease 90 --unique k --unique-for 5 --retry-jitter 0.5 --track --if-failed run".split()
    shown = cli_.ok("job", cli_.ok("enqueue", "a", *options, "--depends", before).out.strip(), "--json").document
    wanted = {"timeout": 90, "unique": "k", "unique_for": 5, "retry_jitter": 0.5, "track": True, "if_failed": "run"}
    assert wanted.items() <= shown.items() and shown["waits_for"] == [before]


def test_arguments_come_from_files_stdin_and_in_binary(cli_: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"$bin": base64.b64encode(b"\xff\x00").decode()}))
    ids = [
        cli_.ok("enqueue", "a", f"@{tmp_path}/a.json").out.strip(),
        cli_.ok("enqueue", "a", "-", stdin="[1, 2.5, null]").out.strip(),
        cli_.ok("enqueue", "a").out.strip(),
    ]
    shown = [one["argument"] for one in cli_.ok("job", *ids, "--json").documents]
    assert shown == [{"$bin": "/wA="}, [1, 2.5, None], None]


def test_each_line_is_a_job(cli_: Cli) -> None:
    assert cli_.ok("enqueue", "a", "-", "--lines", stdin="1\n\n2\n3\n").out == "enqueued 3 jobs\n"
    assert len(cli_.ok("jobs", "--queue", "a", "--ids").out.split()) == 3
    refused = cli_.run("enqueue", "b", "-", "--lines", stdin='1\n"x\n')
    assert refused.code == 2 and "line 2" in refused.err and cli_.ok("jobs", "--queue", "b", "--ids").out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("enqueue a hello", 2, "text needs quotes: '\"hello\"'"),
        ("enqueue a --delay soon", 2, "ms, s, m, h, d or w"),
        ("enqueue a\x07 1", 2, "name: "),
        (f"enqueue a --depends {NOBODY}", 3, "depends"),
        ("enqueue a --lines --wait", 2, "--wait"),
        (f"retry {NOBODY} --queue a", 2, "not both"),
        ("retry", 2, "give ids, or a filter"),
        ("jobs --where slower:soon", 2, "the filter"),
        *((f"{command} {NOBODY}", 3, "no such job") for command in ("job --history", "result", "why")),
    ],
)  # fmt: skip
def test_mistakes_are_named(straight: Cli, arguments: str, code: int, said: str) -> None:
    refused = straight.run(*arguments.split(" "))
    assert refused.code == code and said in refused.err, refused


@pytest.mark.parametrize("arguments", ["job 0687f9809acc00", "enqueue a --priority 1.5", "retry"])
def test_with_json_errors_are_json(straight: Cli, arguments: str) -> None:
    said = straight.run(*arguments.split(" "), "--json")
    error = json.loads(said.err)["error"]
    assert said.out == "" and error.keys() <= {"code", "message", "path"} and error["code"] in ("NOTFOUND", "INVALID")


def test_results_and_how_a_job_ended(cli_: Cli) -> None:
    done = cli_.ok("enqueue", "a", "--keep-result").out.strip()
    assert cli_.run("result", done).code == 1
    late = cli_.run("result", done, "--wait-timeout", "20ms")
    assert late.code == 5 and "has not ended within 20 ms" in late.err
    work(cli_, "a")
    for _ in range(2):  # to look at it is not to read it
        assert cli_.ok("result", done, "--wait").document == {"sum": 42}

    failed = cli_.ok("enqueue", "b", "--max-retry", "0").out.strip()
    work(cli_, "b", fails="no\nsuch \x1b[31muser")
    refused = cli_.run("result", failed)
    assert (refused.code, refused.err) == (1, f"jqmaster: job {failed} failed: no\n")
    assert "\x1b" not in cli_.ok("job", failed).out
    assert cli_.run("result", failed, "--json").err.startswith('{"error": {"code": "FAILED"')

    unkept = cli_.ok("enqueue", "c").out.strip()
    work(cli_, "c")
    assert cli_.run("result", unkept).code == 3
    cli_.ok("call", "config", "--set", "result_grace=0")
    assert cli_.jq.handle(done).result(timeout=60) == {"sum": 42}  # this counts as reading
    gone = cli_.run("result", done, "--json")
    assert gone.code == 6 and '"code": "EXPIRED"' in gone.err


def test_why_a_job_waits(cli_: Cli) -> None:
    first, second = (cli_.ok("enqueue", "a").out.strip() for _ in range(2))
    blocked = cli_.ok("enqueue", "b", "--depends", first).out.strip()
    later = cli_.ok("enqueue", "c", "--delay", "2h").out.strip()
    assert "nobody serves its queue" in cli_.ok("why", first).out
    assert "1 job comes before it" in cli_.ok("why", second).out
    assert f"it waits for 1 job: {first}" in cli_.ok("why", blocked).out
    assert "in 2 h" in cli_.ok("why", later).out
    cli_.ok("call", "constrain", "one", '{"queue": "a"}', "--rate", "1/h")
    work(cli_, "a", fails="x")
    assert "after a failure it waits" in cli_.ok("why", first).out
    assert "limit one has no room: 1 of 1 used" in cli_.ok("why", second).out
    cli_.ok("queues", "pause", "a")
    assert "its queue is paused" in cli_.ok("why", second).out
    assert cli_.ok("why", second, "--json").document["paused"] is True


def test_why_tells_holds_and_rates_apart() -> None:
    from jqmaster.cli.why import reasons

    def said(job: dict[str, object] | None = None, **entry: object) -> list[str]:
        told = {"status": "queued", "held": True, "constraints": [{"id": "c", "open": False, **entry}]}
        return list(reasons({**told, **(job or {})}, {}, 1_000_000))

    hold, *_ = said(by="acme", concurrency=4, running=0, opens_ms=1_003_000, hold_ms=1_003_000)
    assert hold.startswith('limit c (key "acme") is on hold until ') and hold.endswith(", in 3 s")
    full, *_ = said(concurrency=4, running=4)
    assert full == "limit c has no room: 4 of 4 run"
    rate = {"limit": 1000, "period": 1}
    told = {"ahead": 129, "start_ms": 1_002_000, "waiting": 1, "workers": 2, "name": "mail", "unknown": True}
    assert said(told, rate=rate, starts=1000, running=0, opens_ms=1_002_000) == [
        "limit c has no room: 1,000 of 1,000 used in 1 s; it opens in 2 s",
        "129 jobs come before it", "the first of them can start in 2 s at the earliest",
        "2 workers serve its queue", "a worker waits for jobs of its queue",
        "no worker that serves its queue knows jobs named mail: start one of a program that has it",
    ]  # fmt: skip


def test_failures_and_what_can_be_done_with_them(cli_: Cli) -> None:
    assert cli_.ok("failures").out == "no job has failed for good\n"
    ids = [cli_.ok("enqueue", "a", "--max-retry", "0").out.strip() for _ in range(3)]
    for _ in ids:
        work(cli_, "a", fails="Boom: bad luck", group="aiosmtplib.Boom")
    [_, row] = cli_.ok("failures").out.splitlines()
    assert row.split()[:2] == ["aiosmtplib.Boom", "3"] and "bad luck" in row
    told = cli_.ok("failures", "aiosmtplib.Boom").out
    assert re.search(r"name +a\n", told) and ids[-1] in told

    group = ("--group", "aiosmtplib.Boom")
    assert cli_.ok("retry", *group, "--dry-run").out == "3 jobs fit: 3 error\n"
    assert cli_.ok("retry", ids[0]).out == f"{ids[0]}  retried\n"
    assert cli_.ok("retry", *group, "--yes", "--limit", "1", "--to", "c").out == "retried 1 job\n"
    assert cli_.ok("retry", *group, "--yes").out == "retried 1 job\n"
    assert cli_.ok("cancel", "--name", "a", "--yes", "--json").document == {"changed": 3, "left": 0}
    assert cli_.ok("discard", "-", stdin="\n".join(ids)).out.count("discarded, cancelled") == 3
    assert cli_.ok("jobs").out == "no such jobs\n"


@pytest.mark.parametrize("what", ["retry --status error", "cancel", "discard", "kick"])
def test_what_acts_on_many_asks_or_is_told_yes(cli_: Cli, what: str) -> None:
    for name in ("waits", "runs", "fails"):
        cli_.ok("enqueue", name, "--queue", "q", "--max-retry", "0", "--priority", str(-len(name)))
    cli_.engine(lambda it: it.pick("w", "q"))
    work(cli_, "q", fails="x") if what.startswith("retry") else None
    refused = cli_.run(*what.split(), "--queue", "q")
    assert refused.code == 2 and "give --yes to" in refused.err and "fit" in refused.err
    count = cli_.ok(*what.split(), "--queue", "q", "--dry-run", "--json").document["jobs"]
    assert cli_.ok(*what.split(), "--queue", "q", "--yes", "--json").document == {"changed": count, "left": 0} and count


def test_one_that_cannot_be_changed_does_not_stop_the_others(cli_: Cli) -> None:
    job_id, running = (cli_.ok("enqueue", name).out.strip() for name in ("a", "b"))
    cli_.engine(lambda it: it.pick("w", "b"))
    said = cli_.run("discard", NOBODY, running, job_id)
    assert said.code == 1 and said.out.splitlines() == [
        f"{NOBODY}  no such job", f"{running}  it runs; cancel it first", f"{job_id}  discarded",
    ]  # fmt: skip
    answers = cli_.run("kick", NOBODY, running, "--json")
    assert answers.code == 3 and answers.documents == [
        {"id": NOBODY, "answer": "NOTFOUND"}, {"id": running, "answer": "queued"},
    ]  # fmt: skip


def test_jobs_are_found_by_options(cli_: Cli) -> None:
    ids = [cli_.ok("enqueue", "mail", f'{{"customer": {{"id": "{name}"}}, "n": {n}}}').out.strip()
           for n, name in enumerate(("acme", "acme", "zeta"))]  # fmt: skip
    work(cli_, "mail", "mail-1")

    def found(*options: str) -> list[str]:
        return cli_.ok("jobs", "--ids", *options).out.split()

    assert found("--where", '{"match": {"argument.customer.id": "acme"}}') == [ids[1], ids[0]]
    assert found("--where", '{"match": {"argument.n": 1}}') == [ids[1]]
    assert found("--worker", "mail-1") == found("--where", '{"worker": "mail-1"}') == [ids[0]]
    assert cli_.ok("cancel", "--queue", "mail", "--older", "1h", "--yes").out == "no job fits\n"
    assert cli_.ok("cancel", "--queue", "mail", "--newer", "1h", "--dry-run", "--json").document["jobs"] == 2


def test_a_field_in_ms_is_a_duration_or_a_moment(capsys: pytest.CaptureFixture[str]) -> None:
    show.Table("", [{"waited_ms": 5000, "seen_ms": show.now_ms() - 90_000}]).print()
    assert capsys.readouterr().out.splitlines()[1].split() == ["5", "s", "90", "s", "ago"]
