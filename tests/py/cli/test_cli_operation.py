"""Commands for those who run a system: queues, limits, schedules, workers, statistics, settings, copies."""

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
    assert re.search(r" 2 +\d+ s ", mail) and "oldest ready" in cli_.ok("queues", "show", "mail").out
    assert mail.split()[:2] == ["mail", "2"] and metrics.split()[:2] == ["metrics", "1"]
    assert cli_.ok("queues", "pause", "m*").out == "mail is paused; 2 jobs wait\nmetrics is paused; 1 job waits\n"
    assert "paused" in cli_.ok("queues").out.splitlines()[1]
    assert cli_.ok("queues", "resume", "mail", "--json").document["paused"] is False
    assert cli_.ok("queues", "limit", "mail", "2").out == "mail takes jobs while fewer than 2 wait\n"
    assert cli_.ok("queues").out.splitlines()[1].endswith("full")
    worst = cli_.ok("queues", "--sort", "queued").out.splitlines()
    assert worst[1].startswith("mail ") and "never" not in worst[1] and "0 ms" not in worst[1]
    assert "cause" not in cli_.ok("queues", "--json").documents[0]  # nobody waits for ten seconds yet
    full = cli_.run("enqueue", "mail")
    assert full.code == 1 and "mail" in full.err
    assert "result_ttl    60 (own setting)" in cli_.ok("queues", "set", "mail", "result_ttl=60").out
    assert cli_.ok("queues", "set", "mail", "result_ttl=", "--json").document.get("settings") in ({}, None)
    refused = cli_.run("queues", "purge", "mail")
    assert refused.code == 2 and "--yes to discard 2 jobs" in refused.err
    assert cli_.ok("queues", "purge", "mail", "--yes").out == "discarded 2 jobs of mail\n"
    assert cli_.ok("queues", "forget", "mail").out == "forgot mail\n"
    assert [one["name"] for one in cli_.ok("queues", "--json").documents] == ["metrics"]


def test_queues_are_shared_fairly_and_made_on_purpose_only(cli_: Cli) -> None:
    for verb in (("limit", "new", "5"), ("set", "new", "fair=argument.customer")):
        refused = cli_.run("queues", *verb)
        assert refused.code == 3 and "no such queue: new; with --new it is made" in refused.err
    cli_.ok("queues", "limit", "new", "5", "--new")
    assert "shared by     argument.customer\n" in cli_.ok("queues", "set", "new", "fair=argument.customer").out
    levels = '[{"by": "argument.customer", "weights": {"acme": 3}}, {"by": "name"}]'
    shown = cli_.ok("queues", "set", "new", f"fair={levels}", "result_ttl=60").out
    assert "argument.customer (acme 3), then name\n" in shown and "60 (own setting)" in shown
    assert cli_.run("queues", "set", "new", "fair=1").code == 2
    assert cli_.run("queues", "set", "new", "fair=[1]").code == 2
    assert "shared by" not in cli_.ok("queues", "set", "new", "fair=").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["queues", "show", "x"], 3, "no such queue: x"),
        (["queues", "kick", "x"], 3, "no such queue: x"),
        (["kick", "--queue", "x"], 3, "no such queue: x"),
        (["queues", "pause", "x*"], 3, "no such queue: x*"),
        (["queues", "limit", "x", "-1"], 2, "at least 0"),
        (["queues", "fly"], 2, "fly"),
        (["constraints", "show", "x"], 3, "no such constraint"),
        (["constraints", "set", "x", "{}"], 2, "--concurrency or --rate"),
        (["constraints", "set", "x", "{}", "--concurrency", "1"], 2, "match"),
        (["constraints", "set", "x", "{", "--concurrency", "1"], 2, "MATCH is not JSON"),
        (["constraints", "set", "x", '{"name": "a"}', "--rate", "often"], 2, "100/60s"),
        (["constraints", "delete", "x"], 3, "x"),
        (["constraints", "hold", "x", "5m"], 3, "x"),
        (["schedules", "show", "x"], 3, "no such schedule"),
        (["schedules", "set", "x", "a"], 2, "--every or --cron"),
        (["schedules", "set", "x", "a", "--cron", "99 * * * *"], 2, "99"),
        (["schedules", "pause", "x"], 3, "x"),
        (["workers", "stop", "x"], 3, "no such worker is registered: x"),
        (["config", "set", "nope=1"], 2, "nope"),
        (["config", "set", "result_ttl"], 2, "SETTING=VALUE"),
        (["config", "set", "result_ttl=soon"], 2, "a number"),
        (["stats", "--by", "year"], 2, "minute, hour or day"),
        (["import", "/nowhere/x"], 1, "/nowhere/x: No such file"),
        (["export", "/nowhere/x"], 1, "/nowhere/x: No such file"),
        (["top"], 2, "--once"),
        (["constraints", "set", "c", "send_mail", "--rate", "5/s"], 2, """such as '{"name":"send_mail"}'"""),
        (["constraints", "set", "c", '"mail"', "--rate", "5/s"], 2, """such as '{"name":"mail"}'"""),
        (["constraints", "set", "c", "{}", "--rate", "20"], 2, "--rate 20: expected N/TIME"),
        (["constraints", "set", "c", "{}", "--rate", "20/fortnight"], 2, "--rate 20/fortnight: expected"),
        (["constraints", "set", "c", "{}", "--concurrency", "2", "--smooth"], 2, "give --rate as well"),
    ],
)
def test_mistakes_are_named(straight: Cli, arguments: list[str], code: int, said: str) -> None:
    refused = straight.run(*arguments)
    assert refused.code == code and said in refused.err, refused


def test_constraints_show_how_much_is_in_use(cli_: Cli) -> None:
    assert cli_.ok("constraints").out == "no constraints\n"
    said = cli_.ok(
        "constraints", "set", "c", '{"name": "mail"}', "--by", "argument.to", "--concurrency", "2",
        "--rate", "100/min",
    )  # fmt: skip
    assert said.out == ('created c: 2 at once, 100 in 60 s for each argument.to, of jobs that match {"name":"mail"}\n')
    cli_.ok("constraints", "set", "total", '{"name": "other"}', "--concurrency", "1")
    rows = cli_.ok("constraints").out.splitlines()
    assert "0 in 0 keys" in rows[1] and "░░░░░░░░ 0/1" in rows[2]
    cli_.ok("enqueue", "mail", '{"to": 4711}')
    assert "c (key 4711) is on hold until" in cli_.ok("constraints", "hold", "c", "2h", "--by", "4711").out
    assert re.search(r"4711 +0 .*in 2 h", cli_.ok("constraints", "show", "c").out)
    assert "0 in 1 key, 1 full" in cli_.ok("constraints").out
    assert "4711" in cli_.ok("constraints", "show", "c", "--key", "47").out
    assert "4711" not in cli_.ok("constraints", "show", "c", "--key", "7").out
    opened = cli_.ok("constraints", "hold", "c", "0", "--by", "4711").out
    assert opened == "c (key 4711) is not on hold\n"
    again = cli_.ok("constraints", "set", "c", '{"name": "mail"}', "--concurrency", "2").out
    assert again.startswith("replaced c: 2 at once, of") and "it was: 2 at once, 100 in 60 s" in again
    assert cli_.ok("constraints", "show", "c", "--json").document["concurrency"] == 2
    assert cli_.ok("constraints", "delete", "c", "total").out == "deleted c\ndeleted total\n"


def test_who_holds_a_constraint_with_keys_must_say_which(cli_: Cli) -> None:
    mail = '{"name": "mail"}'
    cli_.ok("constraints", "set", "c", mail, "--by", "argument.to", "--rate", "20/minute")
    refused = cli_.run("constraints", "hold", "c", "5m")
    assert refused.code == 2 and "a key for each argument.to: say with --by which one" in refused.err
    cli_.ok("constraints", "set", "pair", mail, "--by", "argument.to", "--by", "queue", "--rate", "20/min")
    refused = cli_.run("constraints", "hold", "pair", "5m", "--by", "4711")
    assert refused.code == 2 and "a key for each argument.to and queue" in refused.err


def test_limits_are_shown_whole_where_bars_would_cut_them(cli_: Cli) -> None:
    limit = ("--concurrency", "1000", "--rate", "100000/60s")
    cli_.ok("constraints", "set", "per-customer-upstream", '{"name": "a"}', "--by", "argument.customer", *limit)
    cli_.ok("constraints", "set", "upstream-in-all", '{"name": "a"}', *limit)
    shown = cli_.ok("constraints").out
    assert shown.count("1,000 at once, 100,000 in 60 s") == 2 and "░" not in shown


def test_where_to_ask_may_stand_in_front_of_the_command(cli_: Cli) -> None:
    assert cli_.call(*cli_.where, "constraints").out == "no constraints\n"
    assert cli_.call("--json", *cli_.where, "enqueue", "a").document["created"] is True
    assert cli_.call(f"--url={cli_.url}", "queues", "show", "a").code == 0 if "--url" in cli_.where else True


def test_schedules(cli_: Cli) -> None:
    assert cli_.ok("schedules").out == "no schedules\n"
    assert "nightly: 0 3 * * *, next " in cli_.ok("schedules", "set", "nightly", "report", "--cron", "0 3 * * *").out
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
    assert cli_.ok("schedules", "show", "nightly").out.count(" 03:00:00") <= 5
    job_id = cli_.ok("schedules", "run", "nightly", "--json").document["job_id"]
    assert f"{job_id}  queued" in cli_.ok("schedules", "show", "nightly").out
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
    assert cli_.ok("workers", "kick", "w1").out == f"took 0 jobs from {worker_id}\n"


def test_workers_that_pull_are_listed_and_lose_their_jobs(cli_: Cli) -> None:
    cli_.ok("enqueue", "a")
    _, [job] = cli_.engine(lambda it: it.pick("mail-1", "a"))
    about = {"host": "web-3", "pid": 4711, "version": "1.2", "knows": ["a", "b"]}
    cli_.engine(lambda it: it.register("mail-1", "a", max_jobs=4, announce=True, running=[job.id], **about))
    assert "1/4" in cli_.ok("workers").out.splitlines()[1]
    shown = cli_.ok("workers", "show", "mail-1").out
    assert all(text in shown for text in ("web-3", "4711", "1.2", "a, b", "1 of 4", job.id))
    assert cli_.ok("workers", "kick", "mail-1", "--delay", "1h").out == "took 1 job from mail-1\n"
    assert cli_.ok("get", job.id, "--json").document["status"] == "scheduled"
    assert cli_.run("workers", "kick", "x").code == 3


def test_statistics(cli_: Cli) -> None:
    assert cli_.ok("stats").out == "nothing happened\n"
    cli_.ok("enqueue", "a")
    for by in ("minute", "hour", "day"):
        assert sum(one["enqueued"] for one in cli_.ok("stats", "--by", by, "--json").documents) == 1
        assert cli_.ok("stats", "--by", by).out.endswith("in all: 1 enqueued\n")
    assert cli_.ok("stats", "--series").out.splitlines()[1].split() == ["a", "1"]
    assert cli_.ok("stats", "--spark").out.startswith("enqueued           1  ▁")
    assert cli_.ok("stats", "--queue", "other").out == "nothing happened\n"


def test_settings(cli_: Cli) -> None:
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
    straight = Cli(["--redis", cli_.where[1]], cli_.url, cli_.call, cli_.jq)
    if cli_.where[0] == "--redis":
        assert straight.ok("jobs", "--namespace", copy, "--full", "--json").document["argument"] == 5
        assert straight.ok("audit", "--namespace", copy).out == f"{copy}: no problems\n"
    broken = tmp_path / "broken"
    broken.write_bytes(Path(file).read_bytes()[:-3])
    refused = cli_.call("import", *target[:2], "--namespace", copy.replace("}", "2}"), str(broken))
    assert refused.code == 2 and "cut off" in refused.err


def test_an_export_that_fails_leaves_the_old_file(straight: Cli, tmp_path: Path) -> None:
    file = tmp_path / "old.jq"
    file.write_text("precious")
    assert straight.call("export", "--redis", "unix:///nowhere.sock", str(file)).code == 4
    assert file.read_text() == "precious"


def test_bench_leaves_nothing_behind(straight: Cli, redis_server: object) -> None:
    rows = straight.ok("bench", "--jobs", "20", "--concurrency", "2", "--json").documents
    assert len(rows) == 5 and all(row["p99_ms"] >= row["p50_ms"] > 0 for row in rows)
    with redis_server.client() as client:  # type: ignore[attr-defined]
        assert not list(client.scan_iter("{jq-bench*"))
    refused = straight.call("bench", "--url", "http://127.0.0.1:1")
    assert refused.code == 2 and "--redis" in refused.err


def test_top_once(cli_: Cli) -> None:
    cli_.ok("enqueue", "mail")
    cli_.ok("constraints", "set", "total", '{"name": "mail"}', "--concurrency", "1")
    lines = cli_.ok("top", "--once", "--every", "10ms").out.splitlines()
    assert lines[0].startswith("JQ ") and lines[1].startswith("1 queued")
    assert max(len(line) for line in lines) <= 80
    assert cli_.ok("top", "--every", "10ms", "--json").document["totals"]["queued"] == 1


def test_what_cannot_be_reached(straight: Cli, namespace: str) -> None:
    assert "jqmaster serve" in straight.call("queues", "--url", "http://127.0.0.1:1").err
    assert straight.call("queues", "--url", "http://127.0.0.1:1").code == 4
    gone = straight.call("queues", "--redis", "redis://user:secret@127.0.0.1:1")
    assert gone.code == 4 and "secret" not in gone.err and "127.0.0.1:1" in gone.err
    slip = straight.call("queues", *straight.where[:2], "--namespace", "{slip}")
    assert slip.code == 4 and "no namespace {slip}" in slip.err
    both = straight.call("queues", "--url", "http://x", "--redis", "unix:///x")
    assert both.code == 2 and "not both" in both.err
    assert straight.call("queues", "--url", "ftp://x").code == 2


def test_the_environment_gives_every_option(straight: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JQ_REDIS", straight.where[1])
    monkeypatch.setenv("JQ_NAMESPACE", straight.where[3])
    monkeypatch.setenv("JQ_ENQUEUE_PRIORITY", "7")
    monkeypatch.setenv("JQ_ENQUEUE_TAG", "night")
    monkeypatch.setenv("JQ_JSON", "1")
    job_id = straight.call("enqueue", "a").document["id"]
    shown = straight.call("get", job_id).document
    assert (shown["priority"], shown["tags"]) == (7, ["night"])
    own = straight.call("enqueue", "a", "--priority", "1", "--tag", "x").document["id"]
    shown = straight.call("get", own).document
    assert (shown["priority"], shown["tags"]) == (1, ["x"])
    assert straight.call("queues", "pause", "a").document["paused"] is True
    monkeypatch.setenv("JQ_URL", straight.url)  # comes before JQ_REDIS
    assert straight.call("get", job_id).code == 0
    monkeypatch.setenv("JQ_ENQUEUE_PRIORITY", "high")
    assert "whole number" in straight.call("enqueue", "a").err
    monkeypatch.setenv("JQ_JSON", "perhaps")
    refused = straight.call("queues")
    assert refused.code == 2 and "JQ_JSON" in refused.err


def test_moments_and_durations_are_readable() -> None:
    from jqmaster.cli import show

    now = round(time.time() * 1000)
    assert [show.when(now + ms, now) for ms in (0, -3000, 300_000, -7_200_000)] == [
        "now", "3 s ago", "in 5 min", "2 h ago",
    ]  # fmt: skip
    assert [show.duration(one) for one in (0, 0.0042, 4.2, 59, 300, 7500, 86400 * 40)] == [
        "0 s", "4.2 ms", "4.2 s", "59 s", "5 min", "2 h 5 min", "40 d",
    ]  # fmt: skip
    assert show.cut("日本語テキスト", 7) == "日本語…" and show.width("日本") == 4
