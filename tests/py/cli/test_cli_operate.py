"""Commands for those who run a system: queues, limits, schedules, workers, statistics, settings, copies, and `call`."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cli_support import Cli, call, cli_, straight  # noqa: F401 (fixtures)


def test_queues_are_listed_and_changed(cli_: Cli) -> None:
    assert cli_.ok("queues").out.startswith("no queues yet")
    for name in ("mail", "mail", "metrics"):
        cli_.ok("enqueue", name)
    [head, mail, metrics] = cli_.ok("queues").out.splitlines()
    assert head.split() == ["QUEUE", "QUEUED", "OLDEST", "IN/MIN"]
    assert mail.split()[:2] == ["mail", "2"] and metrics.split()[:2] == ["metrics", "1"]
    assert "oldest ready" in cli_.ok("queues", "show", "mail").out
    assert cli_.ok("queues", "pause", "m*").out == "mail is paused; 2 jobs wait\nmetrics is paused; 1 job waits\n"
    row = cli_.ok("queues", "--sort", "waiting").out.splitlines()[1]
    assert "paused" in row and "growing" in row and row.startswith("mail ")
    assert cli_.ok("queues", "resume", "mail", "--json").document["paused"] is False
    assert re.search("max waiting +2\n", cli_.ok("queues", "set", "mail", "max_waiting=2", "result_ttl=60").out)
    assert cli_.ok("queues").out.splitlines()[1].endswith("full")
    assert cli_.ok("queues", "set", "mail", "max_waiting=", "result_ttl=", "--json").document["max_waiting"] == 0
    assert cli_.run("queues", "purge", "mail").code == 2
    assert cli_.ok("queues", "purge", "mail", "--yes").out == "discarded 2 jobs\n"
    assert cli_.ok("queues", "forget", "mail").out == "forgot mail\n"
    assert [one["name"] for one in cli_.ok("queues", "--json").documents] == ["metrics"]


def test_queues_are_shared_fairly_and_made_on_purpose_only(cli_: Cli) -> None:
    refused = cli_.run("queues", "set", "new", "fair=argument.customer")
    assert refused.code == 3 and "no such queue: new; with --new it is made" in refused.err
    cli_.ok("queues", "set", "new", "fair=argument.customer", "--new")
    levels = [{"by": "argument.customer", "weights": {"acme": 3}}, {"by": "name"}]
    text = '[{"by": "argument.customer", "weights": {"acme": 3}}, {"by": "name"}]'
    assert cli_.ok("queues", "set", "new", f"fair={text}", "--json").document["fair"] == levels
    assert cli_.run("queues", "set", "new", "fair=[1]").code == 2
    assert not cli_.ok("queues", "set", "new", "fair=", "--json").document.get("fair")


def test_a_long_name_in_a_pipe_moves_its_own_row_alone(cli_: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    for name in ("a", "b" * 200):
        cli_.ok("enqueue", name)
    [_, short, long] = cli_.ok("queues").out.splitlines()
    assert len(short) < 100 and "b" * 200 in long


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("queues show x", 3, "no such queue: x"),
        ("limits show x", 3, "no such limit"),
        ("limits set x {}", 2, "--concurrency or --rate"),
        ('limits set x {"name":"a"} --rate often', 2, "100/60s"),
        ("limits set x send_mail --rate 5/s", 2, """such as '{"name":"send_mail"}'"""),
        ("limits set x {} --concurrency 2 --smooth", 2, "give --rate as well"),
        ("schedules show x", 3, "no such schedule"),
        ("schedules set x a", 2, "--every or --cron"),
        ("workers stop x", 3, "no worker x is registered"),
        ("config set result_ttl", 2, "SETTING=VALUE"),
        ("config set result_ttl=soon", 2, "a number"),
        ("export /nowhere/x", 1, "/nowhere/x: No such file"),
        ("top", 2, "--once"),
        ("operations fly", 3, "no such operation: fly"),
    ],
)
def test_mistakes_are_named(straight: Cli, arguments: str, code: int, said: str) -> None:
    refused = straight.run(*arguments.split())
    assert refused.code == code and said in refused.err, refused


def test_limits_show_how_much_is_in_use(cli_: Cli) -> None:
    assert cli_.ok("limits").out == "no limits\n"
    said = cli_.ok(
        "limits", "set", "c", '{"name": "mail"}', "--by", "argument.to", "--concurrency", "2", "--rate", "100/min"
    )
    assert said.out == 'created c: 2 at once, 100 in 60 s for each argument.to, of jobs that match {"name":"mail"}\n'
    cli_.ok("limits", "set", "total", '{"name": "other"}', "--concurrency", "1")
    rows = cli_.ok("limits").out.splitlines()
    assert "0 in 0 keys" in rows[1] and "0/1" in rows[2]
    cli_.ok("enqueue", "mail", '{"to": 4711}')
    assert "argument.to" in cli_.run("limits", "hold", "c", "5m").err
    assert "c (key 4711) is on hold until" in cli_.ok("limits", "hold", "c", "2h", "--by", "4711").out
    assert re.search(r"4711 +.*in 2 h", cli_.ok("limits", "show", "c").out)
    assert "0 in 1 key, 1 full" in cli_.ok("limits").out
    assert cli_.ok("limits", "hold", "c", "0", "--by", "4711").out == "c (key 4711) is not on hold\n"
    again = cli_.ok("limits", "set", "c", '{"name": "mail"}', "--concurrency", "2").out
    assert again.startswith("replaced c: 2 at once, of") and "it was: 2 at once, 100 in 60 s" in again
    assert cli_.ok("limits", "show", "c", "--json").document["concurrency"] == 2
    assert cli_.ok("limits", "delete", "c", "total").out == "deleted c\ndeleted total\n"


def test_schedules(cli_: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert cli_.ok("schedules").out == "no schedules\n"
    said = cli_.ok("schedules", "set", "nightly", "report", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin").out
    assert said.startswith("nightly: 0 3 * * * Europe/Berlin, next ") and " 03:00:00 Europe/Berlin, in " in said
    made = cli_.ok(
        "schedules", "set", "often", "ping", '{"$bin": "/wA="}', "--every", "5m", "--job", '{"queue": "q"}',
        "--paused", "--json",
    ).document  # fmt: skip
    assert made["job"] == {"name": "ping", "queue": "q"} and made["argument"] == {"$bin": "/wA="}
    [_, nightly, often] = cli_.ok("schedules").out.splitlines()
    assert nightly.split()[-3] == "in" and often.endswith("paused")
    assert cli_.ok("schedules", "resume", "often").out.startswith("often goes on, next ")
    again = cli_.ok("schedules", "show", "often", "--next", "3", "--json").document
    assert len(again["next"]) == 3 and again["argument"] == {"$bin": "/wA="} and not again.get("paused")
    job_id = cli_.ok("schedules", "run", "nightly").out.split()[-1]
    shown = cli_.ok("schedules", "show", "nightly", "--next", "2").out
    assert shown.count(" 03:00:00 Europe/Berlin, in ") == 2 and re.search(f"{job_id} +queued", shown)
    assert cli_.ok("schedules", "delete", "often", "nightly").out == "deleted often\ndeleted nightly\n"


def test_workers_are_listed_and_asked(cli_: Cli) -> None:
    assert cli_.ok("workers").out.startswith("no worker is listed")
    worker_id = cli_.engine(lambda it: it.register("w1", ["a", "b"], max_jobs=3, url="http://127.0.0.1:9/"))
    row = cli_.ok("workers").out.splitlines()[1]
    assert worker_id in row and "w1" in row and "0/3" in row
    assert cli_.ok("workers", "quiet", "w1").out == f"{worker_id} was asked to take no more jobs\n"
    assert cli_.ok("workers", "stop", worker_id, "--json").document["request"] == "stop"
    assert "asked to stop" in cli_.ok("workers").out
    cli_.ok("workers", "resume", "w1")
    assert cli_.ok("workers", "--json").document["request"] == ""


def test_workers_that_pull_are_listed_and_lose_their_jobs(cli_: Cli) -> None:
    cli_.ok("enqueue", "a")
    _, [job] = cli_.engine(lambda it: it.pick("mail-1", "a"))
    about = {"host": "web-3", "pid": 4711, "version": "1.2", "knows": ["a", "b"]}
    cli_.engine(lambda it: it.register("mail-1", "a", max_jobs=4, announce=True, running=[job.id], **about))
    assert "1/4" in cli_.ok("workers").out.splitlines()[1]
    shown = cli_.ok("workers", "show", "mail-1").out
    assert all(text in shown for text in ("web-3", "4,711", "1.2", "a, b", job.id))
    assert cli_.ok("kick", "--worker", "mail-1", "--delay", "1h", "--yes").out == "kicked 1 job\n"
    assert cli_.ok("job", job.id, "--json").document["status"] == "scheduled"


def test_statistics_settings_and_top(cli_: Cli) -> None:
    assert cli_.ok("stats").out == "nothing happened\n"
    cli_.ok("enqueue", "a")
    for by in ("minute", "hour", "day"):
        assert sum(one["enqueued"] for one in cli_.ok("stats", "--by", by, "--json").documents) == 1
        assert cli_.ok("stats", "--by", by).out.endswith("in all: 1 enqueued\n")
    assert cli_.ok("stats", "--series").out.splitlines()[1].split() == ["a", "a", "1"]
    assert cli_.ok("stats", "--queue", "other").out == "nothing happened\n"

    cli_.ok("limits", "set", "total", '{"name": "mail"}', "--concurrency", "1")
    lines = cli_.ok("top", "--once").out.splitlines()
    assert " JQ " in lines[0] and lines[2].startswith("1 queued") and re.search(r"in (0\.\d|1)", lines[3])
    assert max(len(line) for line in lines) <= 80 and any("total" in line for line in lines)
    assert cli_.ok("top", "--json").document["totals"]["queued"] == 1

    assert re.search(r"result_ttl +1 h +how long", cli_.ok("config").out)
    assert cli_.ok("config", "set", "result_ttl=600", "stats=false", "--json").document["result_ttl"] == 600
    assert re.search(r"stats +false +true", cli_.ok("config").out)
    cli_.ok("config", "set", "result_ttl=", "stats=")
    assert cli_.ok("config", "--json").document["result_ttl"] == 3600


def test_export_and_import(cli_: Cli, tmp_path: Path, namespace: str) -> None:
    cli_.ok("enqueue", "a", "5")
    file, copy = str(tmp_path / "copy.jq"), namespace.replace("}", ".copy}")
    assert re.fullmatch(r"\d+ records are in .*copy\.jq\n", cli_.ok("export", file).out)
    target = [*cli_.where[:2], "--namespace", copy]
    assert cli_.call("import", *target, file, "--json").document["namespace"] == copy
    if cli_.where[0] == "--redis":
        assert cli_.call("jobs", *target, "--full", "--json").document["argument"] == 5
    broken = tmp_path / "broken"
    broken.write_bytes(Path(file).read_bytes()[:-3])
    refused = cli_.call("import", *target[:2], "--namespace", copy.replace("}", "2}"), str(broken))
    assert refused.code == 2 and "cut off" in refused.err
    failed = cli_.call("export", "--redis", "unix:///nowhere.sock", file)
    assert failed.code == 4 and broken.read_bytes() == Path(file).read_bytes()[:-3], "the old file is left"


def test_the_command_line_wins_over_the_environment(straight: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JQ_URL", "http://127.0.0.1:1")
    assert straight.ok("queues").out.startswith("no queues")
    monkeypatch.setenv("JQ_ENQUEUE_PRIORITY", "7")
    assert straight.ok("job", straight.ok("enqueue", "a").out.strip(), "--json").document["priority"] == 7
    job_id = straight.ok("enqueue", "a", "--priority", "1").out.strip()
    monkeypatch.setenv("JQ_JSON", "1")
    assert straight.ok("job", job_id).document["priority"] == 1
    monkeypatch.setenv("JQ_ENQUEUE_PRIORITY", "high")
    refused = straight.run("enqueue", "a")
    assert refused.code == 2 and "JQ_ENQUEUE_PRIORITY" in refused.err
    slip = straight.call("queues", *straight.where[:2], "--namespace", "{slip}")
    assert slip.code == 4 and "there is no namespace {slip}" in slip.err
    front = straight.call("--json", *straight.where, "enqueue", "b", "--priority", "2")
    assert front.document["created"] is True


def test_any_operation_is_called_by_its_name(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "mail", '{"a": 1}', "--unique", "k").out.strip()
    assert cli_.ok("call", "free", "--unique", "k").out.strip() == job_id
    changed = f'[{{"id": "{job_id}", "priority": -5, "argument": [2]}}]'
    assert cli_.ok("call", "change", "--jobs", changed, "--json").document == "queued"
    shown = cli_.ok("job", job_id, "--json").document
    assert (shown["priority"], shown["argument"]) == (-5, [2])
    [row] = cli_.ok("call", "jobs", "--where", "queue:mail status:queued", "--json").documents
    assert row["id"] == job_id and job_id in cli_.ok("call", "jobs").out
    cli_.ok(
        "call", "subscribe", "--id", "w", "--subscribe-url", "http://h/", "--match", '{"name": "x"}', "--on", "error"
    )
    assert cli_.ok("call", "webhooks", "--json").document["url"] == "http://h/"
    assert re.search(r"text +v1\.4", cli_.ok("call", "mark", "--text", "v1.4").out)
    for number in range(3):
        cli_.ok("enqueue", f"k{number}")
    part = cli_.ok("call", "queues", "--count", "1", "--json")
    assert len(part.documents) == 1 and "there is more: --all" in part.err
    assert len(cli_.ok("call", "queues", "--count", "1", "--all", "--json").documents) == 4
    assert cli_.ok("call", "queue", "--name", "mail", "--paused", "--json").document["paused"] is True
    assert cli_.ok("call", "queue", "--name", "mail", "--paused=false", "--json").document["paused"] is False
    missing = cli_.run("call", "forget", "--name", "nowhere")
    assert missing.code == 3 and "nowhere" in missing.err
    assert cli_.run("call", "subscribe").code == 2 and "Did you mean" in cli_.run("call", "kik").err


def test_operations_are_told(call) -> None:  # type: ignore[no-untyped-def]
    listed = call("operations").out
    assert "kick" in listed and "operator" in listed
    told = call("operations", "kick").out
    assert "POST /jobs/kick" in told and "INVALID field" in told and "1..1000" in told
    assert call("operations", "kick", "--json").document["name"] == "kick"
