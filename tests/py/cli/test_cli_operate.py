"""Commands for those who run a system: queues, limits, schedules, workers, statistics, settings, copies, and `call`."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cli_support import Cli, call, cli_, straight  # noqa: F401 (fixtures)


def test_queues_are_listed_shown_and_paused(cli_: Cli) -> None:
    assert cli_.ok("queues").out.startswith("no queues yet")
    for name in ("mail", "mail", "metrics"):
        cli_.ok("enqueue", name)
    [head, mail, metrics] = cli_.ok("queues").out.splitlines()
    assert head.split() == ["QUEUE", "QUEUED", "OLDEST", "IN"]
    assert mail.split()[:2] == ["mail", "2"] and metrics.split()[:2] == ["metrics", "1"]
    assert re.search(r"(?s)oldest ready.*last 5 minutes:\nIN\n +2", cli_.ok("queues", "mail").out)
    assert cli_.ok("queues", "pause", "m*").out == "mail is paused\nmetrics is paused\n"
    assert "paused" in cli_.ok("queues").out
    assert cli_.ok("queues", "resume", "mail", "--json").document["paused"] is False
    assert re.search("max waiting +2\n", cli_.ok("call", "queue", "mail", "--max-waiting", "2").out)
    assert cli_.ok("queues").out.splitlines()[1].endswith("full")


def test_what_is_said_of_queues_is_read_as_people_write_it(cli_: Cli) -> None:
    made = cli_.ok("call", "queue", "q", "--fair", "argument.customer", "--set", "result_ttl=60,route=queue", "--json")
    assert made.document["fair"] == {"by": "argument.customer"}
    assert made.document["settings"] == {"result_ttl": 60, "route": "queue"}
    fair = '{"by": "argument.customer", "weights": {"acme": 3}}'
    again = cli_.ok("call", "queue", "q", "--fair", fair, "--unset", "route", "--json").document
    assert again["fair"]["weights"] == {"acme": 3} and again["settings"] == {"result_ttl": 60}
    assert not cli_.ok("call", "queue", "q", "--fair", "", "--json").document.get("fair")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("queues x", 3, "no such queue: x"),
        ("queues pause x", 3, "no such queue: x"),
        ("limits x", 3, "no such limit"),
        ("schedules resume x", 3, "no such schedule: x"),
        ("failures x", 3, "no job has failed for good in the group x"),
        ('call constrain x {"name":"a"} --rate 100', 2, "100/60s"),
        ("call constrain x send_mail --rate 5/s", 2, """text needs quotes: '"send_mail"'"""),
        ("call kick", 2, "expected job ids"),
        ("call config --set result_ttl", 2, "SETTING=VALUE"),
        ("export /nowhere/x", 1, "/nowhere/x: No such file"),
        ("top", 2, "needs a terminal"),
    ],
)
def test_mistakes_are_named(straight: Cli, arguments: str, code: int, said: str) -> None:
    refused = straight.run(*arguments.split())
    assert refused.code == code and said in refused.err, refused


def test_limits_show_how_much_is_in_use(cli_: Cli) -> None:
    assert cli_.ok("limits").out == "no limits\n"
    limit = ("call", "constrain", "c", '{"name": "mail"}', "--by", "argument.to", "--concurrency", "2")
    assert cli_.ok(*limit, "--rate", "100/min", "--json").document["rate"] == {"limit": 100, "period": 60}
    cli_.ok("call", "constrain", "total", '{"name": "other"}', "--concurrency", "1")
    rows = cli_.ok("limits").out.splitlines()
    assert rows[1].split()[:7] == ["c", "2", "100", "in", "60", "s", "argument.to"] and '{"name":"mail"}' in rows[1]
    assert rows[2].split()[:2] == ["total", "1"]
    cli_.ok("enqueue", "mail", '{"to": 4711}')
    assert "by" in cli_.run("call", "hold", "c", "5m").err
    cli_.ok("call", "hold", "c", "1h", "--by", "acme")
    assert re.search(r"acme +in 60 min", cli_.ok("limits", "c").out)
    cli_.ok("call", "hold", "c", "0", "--by", "acme")
    assert re.search("until .*, in 2 h", cli_.ok("call", "hold", "c", "2h", "--by", "4711").out)
    assert re.search(r"4711 +in 2 h", cli_.ok("limits", "c").out)
    assert cli_.ok("limits").out.splitlines()[1].split()[7] == "1"


def test_schedules(cli_: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert cli_.ok("schedules").out == "no schedules\n"
    cron = ("--job", "report", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
    assert "Europe/Berlin" in cli_.ok("call", "schedule", "nightly", *cron).out
    made = cli_.ok(
        "call", "schedule", "often", "--job", '{"name": "ping", "queue": "q"}', "--argument", '{"$bin": "/wA="}',
        "--every", "5m", "--paused", "--json",
    ).document  # fmt: skip
    assert made["job"] == {"name": "ping", "queue": "q"} and made["argument"] == {"$bin": "/wA="}
    [_, nightly, often] = cli_.ok("schedules").out.splitlines()
    assert re.search(r"0 3 \* \* \* +Europe/Berlin +report +in ", nightly) and often.endswith("yes")
    assert cli_.ok("schedules", "resume", "often").out == "often goes on\n"
    again = cli_.ok("schedules", "often", "--json").document
    assert len(again["next"]) == 5 and again["argument"] == {"$bin": "/wA="} and not again.get("paused")
    assert again["job"] == {"name": "ping", "queue": "q"}
    job_id = cli_.ok("call", "schedule", "nightly", "--run", "--json").document["job_id"]
    shown = cli_.ok("schedules", "nightly").out
    assert re.search(f"{job_id} +queued", shown) and re.search(r'job +{"name":"report"}', shown)
    assert shown.count("\nnext ") == 1 and re.search(r"next +\d{4}-\d\d-\d\d 0[12]:00:00, in .*; ", shown)


def test_workers_are_listed_and_asked(cli_: Cli) -> None:
    assert cli_.ok("workers").out.startswith("no worker is listed")
    worker_id = cli_.engine(lambda it: it.register("w1", ["a", "b"], max_jobs=3, url="http://127.0.0.1:9/"))
    row = cli_.ok("workers").out.splitlines()[1]
    assert worker_id in row and "w1" in row and re.search(r" 3 +now", row)
    assert cli_.ok("call", "worker", worker_id, "stop").out == "done\n"
    assert "ASKED TO" in cli_.ok("workers").out
    assert cli_.ok("workers", "w1", "--json").document["request"] == "stop"


def test_statistics_and_settings(cli_: Cli) -> None:
    assert cli_.ok("stats").out == "nothing happened\n"
    cli_.ok("enqueue", "a")
    for by in ("minute", "hour", "day"):
        assert sum(one["enqueued"] for one in cli_.ok("stats", by, "--json").documents) == 1
    assert re.search(r"^\d\d-\d\d \d\d:\d\d +1$", cli_.ok("stats").out, re.M)
    assert cli_.ok("stats", "--queue", "other").out == "nothing happened\n"
    assert re.search(r"result_ttl +3600 +3600 +seconds +how", cli_.ok("config").out)
    assert cli_.ok("call", "config", "--set", "result_ttl=600,stats=false", "--json").document["result_ttl"] == 600
    assert re.search(r"stats +false +true", cli_.ok("config").out)


def test_export_and_import(cli_: Cli, tmp_path: Path, namespace: str) -> None:
    cli_.ok("enqueue", "a", "5")
    file, copy = str(tmp_path / "copy.jq"), namespace.replace("}", ".copy}")
    assert re.fullmatch(r"\d+ records are in .*copy\.jq\n", cli_.ok("export", file).out)
    if cli_.where[0] != "--redis":
        assert "give --redis" in cli_.call("import", *cli_.where, file).err
        return
    target = [*cli_.where[:2], "--namespace", copy]
    assert cli_.call("import", *target, file, "--json").document["namespace"] == copy
    assert cli_.call("jobs", *target, "--json").document["argument"] == 5
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
    changed = f'[{{"id": "{job_id}", "priority": -5, "argument": [2]}}]'
    assert cli_.ok("call", "change", "--jobs", changed, "--json").document == "queued"
    shown = cli_.ok("job", job_id, "--json").document
    assert (shown["priority"], shown["argument"]) == (-5, [2])
    [row] = cli_.ok("call", "jobs", "--where", '{"queue": "mail", "status": "queued"}', "--json").documents
    assert row["id"] == job_id and job_id in cli_.ok("call", "jobs").out
    cli_.ok("call", "subscribe", "w", "--subscribe-url", "http://h/", "--match", '{"name": "x"}', "--on", "error")
    assert cli_.ok("call", "webhooks", "--json").document["url"] == "http://h/"
    assert re.search(r"text +v1\.4", cli_.ok("call", "mark", "--text", "v1.4").out)
    for number in range(3):
        cli_.ok("enqueue", f"k{number}")
    part = cli_.ok("call", "queues", "--count", "1", "--json")
    assert len(part.documents) == 1 and "there is more: --all" in part.err
    assert len(cli_.ok("call", "queues", "--count", "1", "--all", "--json").documents) == 4
    assert cli_.run("call", "watch", "--all", "--ids", job_id).code == 2  # it has no pages
    cli_.ok("enqueue", "k0", "--tag", "blue")
    assert cli_.ok("call", "tags", "--json").documents == [{"tag": "blue", "count": 1}]
    assert cli_.ok("call", "audit", "--count", "1", "--all").out == "none\n"  # once, of all its pages
    assert cli_.ok("call", "queue", "--name", "mail", "--paused", "--json").document["paused"] is True
    assert cli_.ok("call", "queue", "--name", "mail", "--paused=false", "--json").document["paused"] is False
    missing = cli_.run("call", "forget", "--name", "nowhere")
    assert missing.code == 3 and "nowhere" in missing.err
    assert cli_.run("call", "subscribe").code == 2 and "Did you mean" in cli_.run("call", "kik").err
