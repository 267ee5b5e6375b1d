"""Commands about jobs, as their user sees them: text and --json, exit codes, wrong input."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS

from cli_support import Cli, call, cli_, straight  # noqa: F401 (fixtures)
from jqmaster.cli.values import as_json
from jqmaster.manifest.fields import FIELDS


def work(cli: Cli, queue: str, worker: str = "w", *, fails: str | None = None) -> str:
    """One attempt at the next job of a queue; its id."""
    [job] = cli.engine(lambda it: it.pick(worker, queue)).jobs
    outcome = {"id": job.id, "token": job.token, "type": "success"}
    blob = b"\x81\xa3sum\x2a"
    if fails is not None:
        outcome |= {"type": "failure", "message": fails, "group": "Boom"}
        blob = b"\xc0"
    cli.engine(lambda it: it.finish("w", [(outcome, blob)]))
    return str(job.id)


def test_enqueue_prints_the_id_and_get_shows_the_job(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "mail", '{"to": "ann"}', "--priority", "-5", "--tag", "a", "--tag", "b").out.strip()
    text = cli_.ok("get", job_id).out
    assert "status    queued" in text and 'argument  {"to":"ann"}' in text and "tags      a, b" in text
    shown = cli_.ok("get", job_id, "--json").document
    assert (shown["id"], shown["priority"], shown["argument"]) == (job_id, -5, {"to": "ann"})


def test_get_shows_whatever_a_job_was_told(cli_: Cli) -> None:
    """A value for each field that it shows and few jobs have."""
    [before] = cli_.engine(lambda it: it.enqueue([({"name": "a"}, b"\xc0")]))
    told = {
        "max_lapses": (3, "3"), "max_runtime": (90, "90 s"), "tags": (["a", "b"], "a, b"),
        "unique": ("k/1", "k/1"), "unique_for": (5, "5 s"), "depends": ([before.id], before.id),
        "if_failed": ("run", "run"), "retry_base": (2, "2 s"), "retry_cap": (600, "10 min"),
        "retry_jitter": (0.5, "0.5"), "track": (True, "true"), "notify": ("http://h/", "http://h/"),
    }  # fmt: skip
    for field in FIELDS:
        if field.passed:
            value = KINDS[field.kind].good[0]
            text = ", ".join(value) if isinstance(value, list) else value
            told[field.name] = (value, text if isinstance(text, str) else as_json(value))
    apart = {"unique_within": (7, "7 s")}  # not together with unique_for
    for part in (told, {"unique": ("k/2", "k/2"), **apart}):
        spec = {"name": "a", **{name: value for name, (value, _) in part.items()}}
        [job] = cli_.engine(lambda it, spec=spec: it.enqueue([(spec, b"\xc0")]))
        text = cli_.ok("get", job.id).out
        for name, (_, shown) in part.items():
            assert re.search(rf"^{name.replace('_', ' ')} +{re.escape(shown)}$", text, re.MULTILINE), (name, text)
    assert {one.name for one in FIELDS if one.rare and one.shown} == {*told, *apart}, "a value for each, and its text"


def test_arguments_come_from_files_stdin_and_in_binary(cli_: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"$bin": base64.b64encode(b"\xff\x00").decode()}))
    ids = [
        cli_.ok("enqueue", "a", f"@{tmp_path}/a.json").out.strip(),
        cli_.ok("enqueue", "a", "-", stdin="[1, 2.5, null]").out.strip(),
        cli_.ok("enqueue", "a").out.strip(),
    ]
    shown = [one["argument"] for one in cli_.ok("get", *ids, "--json").documents]
    assert shown == [{"$bin": "/wA="}, [1, 2.5, None], None]


def test_each_line_is_a_job(cli_: Cli) -> None:
    assert cli_.ok("enqueue", "a", "-", "--lines", stdin="1\n\n2\n3\n").out == "enqueued 3 jobs\n"
    assert len(cli_.ok("jobs", "--queue", "a", "--ids").out.split()) == 3
    refused = cli_.run("enqueue", "b", "-", "--lines", stdin='1\n"x\n')
    assert refused.code == 2 and "line 2" in refused.err
    assert cli_.ok("jobs", "--queue", "b", "--ids").out == ""


def test_a_second_job_with_a_unique_key_is_said_to_be_there(cli_: Cli) -> None:
    first = cli_.ok("enqueue", "a", "--unique", "k", "--json").document
    second = cli_.ok("enqueue", "a", "--unique", "k", "--json").document
    assert first["created"] and second == {"id": first["id"], "created": False}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["enqueue", "a", "hello"], 2, "text needs quotes: '\"hello\"'"),
        (["enqueue", "a", "@/nowhere/x"], 1, "/nowhere/x: No such file"),
        (["enqueue", "a", "--priority", "high"], 2, "whole number"),
        (["enqueue", "a", "--delay", "soon"], 2, "ms, s, m, h, d or w"),
        (["enqueue", "a", "--if-exists", "maybe"], 2, "keep, replace or latest"),
        (["enqueue", "a\x07", "1"], 2, "name: "),
        (["enqueue", "a", "--depends", "0687f9809acc00"], 3, "depends"),
        (["enqueue", "a", "--lines", "--wait"], 2, "--wait"),
        (["get", "nope"], 3, "no such job: nope"),
        (["result", "0687f9809acc00"], 3, "no such job"),
        (["explain", "0687f9809acc00"], 3, "no such job"),
        (["history", "0687f9809acc00"], 3, "no such job"),
        (["cancel", "0687f9809acc00"], 3, "no such job"),
        (["retry"], 2, "give ids, or a filter"),
        (["retry", "0687f9809acc00", "--queue", "a"], 2, "not both"),
        (["jobs", "--status", "lost"], 2, "expected queued"),
        (["kick"], 2, "--queue"),
    ],
)
def test_mistakes_are_named(straight: Cli, arguments: list[str], code: int, said: str) -> None:
    refused = straight.run(*arguments)
    assert refused.code == code and said in refused.err, refused


def test_results_and_how_a_job_ended(cli_: Cli) -> None:
    done = cli_.ok("enqueue", "a", "--keep-result").out.strip()
    waits = cli_.run("result", done)
    assert waits.code == 1 and "it is queued" in waits.err
    late = cli_.run("result", done, "--wait-timeout", "20ms")
    assert late.code == 5 and "has not ended within 20 ms" in late.err
    work(cli_, "a")
    assert cli_.ok("result", done).document == {"sum": 42}
    assert cli_.ok("result", done, "--wait").document == {"sum": 42}

    failed = cli_.ok("enqueue", "b", "--max-retry", "0").out.strip()
    work(cli_, "b", fails="no\nsuch \x1b[31muser")
    refused = cli_.run("result", failed)
    assert (refused.code, refused.err) == (1, f"jqmaster: job {failed} failed: no\n")
    assert "\x1b" not in cli_.ok("get", failed).out
    assert cli_.run("result", failed, "--json").err.startswith('{"error": {"code": "FAILED"')


def test_a_result_that_was_not_kept_is_not_found(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a").out.strip()
    work(cli_, "a")
    refused = cli_.run("result", job_id)
    assert refused.code == 3 and "--keep-result" in refused.err


def test_a_result_that_is_gone_has_an_exit_code_of_its_own(cli_: Cli) -> None:
    cli_.ok("config", "set", "result_grace=0")
    job_id = cli_.ok("enqueue", "a", "--keep-result").out.strip()
    work(cli_, "a")
    assert cli_.ok("result", job_id).document == {"sum": 42}
    assert cli_.jq.handle(job_id).result(timeout=60) == {"sum": 42}  # this counts as reading
    gone = cli_.run("result", job_id, "--json")
    assert gone.code == 6 and '"code": "EXPIRED"' in gone.err
    cli_.ok("config", "set", "result_grace=")


def test_explain_says_why_a_job_waits(cli_: Cli) -> None:
    first, second = (cli_.ok("enqueue", "a").out.strip() for _ in range(2))
    blocked = cli_.ok("enqueue", "b", "--depends", first).out.strip()
    later = cli_.ok("enqueue", "c", "--delay", "2h").out.strip()
    assert "nobody serves its queue" in cli_.ok("explain", first).out
    assert "1 job comes before it" in cli_.ok("explain", second).out
    assert f"it waits for 1 job: {first}" in cli_.ok("explain", blocked).out
    assert "in 2 h" in cli_.ok("explain", later).out
    cli_.ok("constraints", "set", "one", '{"queue": "a"}', "--concurrency", "1")
    work(cli_, "a", fails="x")
    assert "after a failure it waits" in cli_.ok("explain", first).out
    cli_.ok("queues", "pause", "a")
    assert "its queue is paused" in cli_.ok("explain", second).out
    assert cli_.ok("explain", second, "--json").document["paused"] is True


def test_explain_names_the_job_that_keeps_its_place_in_a_strict_order(cli_: Cli) -> None:
    cli_.jq.constrain("one", {"queue": "a"}, concurrency=1, order="strict")
    first, second = (cli_.ok("enqueue", "a", "--retry-base", "1h").out.strip() for _ in range(2))
    assert work(cli_, "a", fails="x") == first
    said = cli_.ok("explain", second).out
    assert "constraint one has no room: 1 of 1 in use (strict order" in said
    assert f"job {first} has the place, and is tried again in " in said


def test_explain_tells_holds_costs_and_strict_order_apart() -> None:
    from jqmaster.cli.why import reasons

    def said(job: dict[str, Any] | None = None, strict: str = "", **entry: Any) -> list[str]:
        told = {"status": "queued", "held": True, "constraints": [{"id": "c", "open": False, **entry}]}
        return reasons({**told, **(job or {})}, {}, {strict: None}, 1_000_000)

    hold, *_ = said(by="acme", concurrency=4, running=0, opens_ms=1_003_000, hold_ms=1_003_000)
    assert hold.startswith('constraint c (key "acme") is on hold until ') and hold.endswith(", in 3.0 s")
    both = said(concurrency=4, running=4, opens_ms=1_003_000, hold_ms=1_003_000)
    assert "on hold" in both[0] and both[1] == "constraint c has no room: 4 of 4 run"
    full, *_ = said(strict="c", concurrency=1, running=1)
    assert "1 of 1 in use (strict order: a job keeps its place until it has ended for good)" in full
    rate = {"limit": 1000, "period": 1}
    dear, *_ = said(rate=rate, starts=900.0, cost=900, running=0, opens_ms=1_000_400)
    assert dear == "constraint c has no room: 900 of 1,000 used in 1 s, this job needs 900; it opens in 0.4 s"
    plain, *rest = said({"ahead": 129, "start_ms": 1_000_400, "waiting": 1}, rate=rate, starts=1000,
                        running=0, opens_ms=1_000_400)  # fmt: skip
    assert plain == "constraint c has no room: 1,000 of 1,000 starts in 1 s; it opens in 0.4 s"
    assert rest == [
        "129 jobs come before it", "the first of them can start in 0.4 s at the earliest",
        "a worker waits for jobs of its queue",
    ]  # fmt: skip
    *_, unknown = said({"name": "mail", "waiting": 1, "unknown": True})
    assert unknown == "no worker that serves its queue knows jobs named mail: start one of a program that has it"


def test_history_is_a_timeline(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a", "--max-retry", "0").out.strip()
    work(cli_, "a", fails="Boom: bad luck")
    lines = cli_.ok("history", job_id).out.splitlines()
    assert [line.split()[-1] for line in lines[:2]] == ["WHAT", "enqueued"]
    assert lines[-1].endswith("Boom: bad luck") and "failed" in lines[-1]
    events = cli_.ok("history", job_id, "--json").document["events"]
    assert [one["event"] for one in events] == ["enqueued", "started", "failed"]


def test_history_tells_what_held_the_first_start(cli_: Cli) -> None:
    cli_.jq.constrain("one", {"name": "a"}, concurrency=1)
    job_id = [cli_.ok("enqueue", "a").out.strip() for _ in range(2)][1]
    [running] = cli_.engine(lambda it: it.pick("w", "a")).jobs
    time.sleep(1.1)
    assert cli_.engine(lambda it: it.pick("w", "a")).jobs == []
    cli_.engine(lambda it: it.finish("w", [({"id": running.id, "token": running.token, "type": "success"}, b"\xc0")]))
    work(cli_, "a")
    started = cli_.ok("history", job_id).out.splitlines()[2]
    assert re.search(r"started .* held by one until [-0-9 :]+$", started)
    assert cli_.ok("history", job_id, "--json").document["events"][1]["held_by"] == "one"


def test_failures_by_group_and_what_can_be_done_with_them(cli_: Cli) -> None:
    assert cli_.ok("failures").out == "no job has failed for good\n"
    ids = [cli_.ok("enqueue", "a", "--max-retry", "0").out.strip() for _ in range(3)]
    for _ in ids:
        work(cli_, "a", fails="Boom: bad luck")
    [head, row] = cli_.ok("failures").out.splitlines()
    assert head.split() == ["GROUP", "JOBS", "RECENT", "TREND", "FIRST", "LAST", "NEWEST", "MESSAGE"]
    assert row.split()[:4] == ["Boom", "3", "3", "▁▁▁▁▁▁▁▁▁▁▁█"] and row.endswith("bad luck")
    told = cli_.ok("failures", "--group", "Boom").out
    assert re.search(r"names +a 3\n", told) and "3, 3 of them lately" in told and ids[-1] in told
    assert cli_.run("failures", "--group", "Bang").code == 3
    assert cli_.ok("failures", "--json").document["count"] == 3

    assert cli_.ok("retry", "--group", "Boom", "--dry-run").out == "3 jobs fit: 3 error\n"
    refused = cli_.run("retry", "--group", "Boom")
    assert refused.code == 2 and "give --yes" in refused.err
    assert cli_.ok("retry", ids[0]).out == f"{ids[0]}  retried\n"
    assert cli_.ok("retry", "--group", "Boom", "--yes").out == "retried 2 jobs\n"
    assert cli_.ok("cancel", "--queue", "a", "--yes", "--json").document == {"changed": 3}
    conflict = cli_.run("kick", ids[0])
    assert conflict.code == 1 and "it does not run" in conflict.err
    assert cli_.ok("discard", "-", stdin="\n".join(ids)).out.count("discarded, was cancelled") == 3
    assert cli_.ok("jobs").out == "no such jobs\n"


def test_jobs_go_to_another_queue(cli_: Cli) -> None:
    ids = [cli_.ok("enqueue", "a", "--max-retry", "0", "--max-lapses", "3").out.strip() for _ in range(2)]
    assert cli_.ok("change", ids[0], "--queue", "b").out == f"{ids[0]}  changed, queued\n"
    work(cli_, "b", fails="Boom: no")
    work(cli_, "a", fails="Boom: no")
    assert cli_.ok("retry", ids[0], "--to", "c").out == f"{ids[0]}  retried\n"
    assert cli_.ok("retry", "--queue", "a", "--to", "c", "--yes").out == "retried 1 job\n"
    assert cli_.ok("jobs", "--queue", "c", "--ids").out.split() == ids
    shown = cli_.ok("get", ids[0], "--json").document
    assert (shown["queue"], shown["max_lapses"]) == ("c", 3)
    assert "moved" in cli_.ok("history", ids[0]).out and "from b" in cli_.ok("history", ids[0]).out


def test_a_filter_takes_only_what_the_command_can_change(cli_: Cli) -> None:
    cli_.ok("enqueue", "a")
    assert cli_.ok("retry", "--queue", "a", "--dry-run").out == "no job fits\n"
    assert cli_.ok("cancel", "--queue", "a", "--status", "done", "--dry-run", "--json").document["jobs"] == 0
    assert cli_.ok("cancel", "--queue", "a", "--older", "1h", "--yes").out == "cancelled 0 jobs\n"
    assert cli_.ok("cancel", "--queue", "a", "--newer", "1h", "--yes").out == "cancelled 1 job\n"


def test_running_jobs_are_kicked(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a").out.strip()
    cli_.engine(lambda it: it.pick("w", "a"))
    refused = cli_.run("discard", job_id)
    assert refused.code == 1 and "it runs" in refused.err
    assert cli_.ok("kick", "--queue", "a").out == "kicked 1 job\n"
    assert cli_.ok("jobs", "--ids").out.split() == [job_id]


def test_jobs_fit_the_terminal(cli_: Cli) -> None:
    for number in range(30):
        cli_.ok("enqueue", f"a.name.that.is.rather.long.for.a.table.{number}", "--queue", "q" * 60)
        if number == 1:
            break
    lines = cli_.ok("jobs").out.splitlines()
    assert max(len(line) for line in lines) <= 80 and "…" in lines[1]
    assert cli_.ok("jobs", "--limit", "1").out.splitlines()[-1].startswith("… and more")
    assert [one["name"][-1] for one in cli_.ok("jobs", "--newest", "--json").documents] == ["1", "0"]
    assert cli_.ok("tags").out == "no tags\n"


def test_jobs_are_found_by_a_line_or_by_options(cli_: Cli) -> None:
    ids = [cli_.ok("enqueue", "mail", f'{{"customer": {{"id": "{name}"}}, "n": {n}}}').out.strip()
           for n, name in enumerate(("acme", "acme", "zeta"))]  # fmt: skip
    work(cli_, "mail", "mail-1")

    def found(*options: str) -> list[str]:
        return cli_.ok("jobs", "--ids", *options).out.split()

    assert found("--where", "customer.id:acme") == [ids[1], ids[0]]
    assert found("--where", "customer.id:acme n:>0 zet*") == []
    assert found("--where", "customer.id:ze* n:2") == [ids[2]]
    assert found("--match", '{"argument.n": 1}', "--where", "customer.id:acme") == [ids[1]]
    assert found("--argument", "zeta") == [ids[2]]
    assert found("--worker", "mail-1", "--slower", "0") in ([], [ids[0]])
    assert found("--worker", "mail-1") == found("--where", "worker:mail-1") == [ids[0]]
    assert found("--recent") == [ids[0], *ids[1:]]
    refused = cli_.run("jobs", "--where", "slower:soon")
    assert refused.code == 2 and "expected a duration" in refused.err
    assert cli_.ok("search", "ma").out.splitlines()[1].split() == ["queue", "mail"]
    assert cli_.ok("search", "customer.id:zeta", "--json").document["jobs"][0]["id"] == ids[2]
    assert "nothing is called so" in cli_.ok("search", "nobody").out


def test_all_are_cancelled_or_none(cli_: Cli) -> None:
    ids = [cli_.ok("enqueue", "a").out.strip() for _ in range(2)]
    for odd, path in (("nope", "no such job: nope"), ("0" * 14, "ids[2]")):
        said = cli_.run("cancel", "--atomic", *ids, odd)
        assert said.code == 3 and path in said.err, said
    assert cli_.ok("get", ids[0], "--json").document["status"] == "queued"
    assert cli_.ok("cancel", "--atomic", *ids).out.count("cancelled") == 2
    assert cli_.run("cancel", "--atomic", "--queue", "a", "--yes").code == 2


def test_a_key_is_freed(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a", "--unique", "k/1", "--unique-within", "1h").out.strip()
    assert cli_.ok("enqueue", "a", "--unique", "k/1").out.strip().startswith(job_id)
    assert cli_.ok("free", "k/1").out == f"k/1 is free; it was that of {job_id}\n"
    assert cli_.run("free", "k/1").code == 3


@pytest.mark.parametrize("command", ["get", "result", "explain", "history", "cancel", "retry", "discard", "kick"])
@pytest.mark.parametrize("job_id", ["nope", "0687f9809acc00"])
def test_a_job_that_is_not_there_is_not_found(straight: Cli, command: str, job_id: str) -> None:
    said = straight.run(command, job_id)
    assert said.code == 3 and "no such job" in said.err


def test_one_that_can_be_no_id_does_not_stop_the_others(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a").out.strip()
    said = cli_.run("cancel", "nope", job_id)
    assert said.code == 3 and said.out == f"{job_id}  cancelled\n" and "nope: no such job" in said.err
    answers = cli_.run("retry", "nope", job_id, "--json").documents
    assert answers == [{"id": "nope", "answer": "NOTFOUND"}, {"id": job_id, "answer": "queued"}]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["get", "nope"], {"code": "NOTFOUND", "message": "no such job: nope"}),
        (["enqueue", "a", "--priority", "high"], {"code": "INVALID"}),
        (["enqueue", "a\x07"], {"code": "INVALID", "path": "jobs[0].name"}),
        (["retry"], {"code": "INVALID", "message": "give ids, or a filter such as --queue NAME"}),
        (["fly"], {"code": "INVALID"}),
        (["get", "nope", "--url", "http://127.0.0.1:1"], {"code": "INVALID"}),
    ],
)
def test_with_json_errors_are_json(straight: Cli, arguments: list[str], error: dict[str, str]) -> None:
    said = straight.run(*arguments, "--json")
    assert said.out == ""
    told = json.loads(said.err)["error"]
    assert told.keys() <= {"code", "message", "path"} and told == told | error


def test_what_has_not_ended_can_be_changed(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "a", "1", "--tag", "old").out.strip()
    said = cli_.ok("change", job_id, "--priority", "-3", "--tag", "new", "--argument", "[2]", "--max-retry", "0")
    assert said.out == f"{job_id}  changed, queued\n"
    shown = cli_.ok("get", job_id, "--json").document
    assert (shown["priority"], shown["tags"], shown["argument"], shown["max_retry"]) == (-3, ["new"], [2], 0)
    cli_.ok("cancel", job_id)
    assert cli_.run("change", job_id, "--priority", "1").code == 1
    assert cli_.run("change", "nope", "--priority", "1").code == 3
    assert "say what is to change" in cli_.run("change", job_id).err
