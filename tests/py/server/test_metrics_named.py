"""What dashboard, alerts, the scaling example and the pages ask Prometheus for is in a master's `/metrics`; promtool
understands it, and the alerts fire when they must."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as parse

from jqmaster import JQ
from processes import MasterProcess
from test_metrics import GUIDE, Figure

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "examples" / "deploy"


def of_dashboard() -> list[str]:
    document = json.loads((DEPLOY / "dashboard.json").read_text())
    asked = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    asked += [one["expr"] for one in document["annotations"]["list"]]
    [queues] = [one["query"]["query"] for one in document["templating"]["list"] if one["type"] == "query"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", queues).groups()  # type: ignore[union-attr]
    return [*asked, f'{name}{{{label}=""}}']


def of_alerts() -> list[str]:
    return [
        rule["expr"]
        for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
        for rule in group["rules"]
    ]


def of_keda() -> list[str]:
    return [
        trigger["metadata"]["query"]
        for trigger in yaml.safe_load((DEPLOY / "keda.yaml").read_text())["spec"]["triggers"]
    ]


def of_pages() -> list[str]:
    """Whole names, and the rows of the table of figures, which leave out what they share."""
    [watching] = re.findall(r"^## Watching\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.M | re.S)
    found = re.findall(r"\bjq_\w*[a-z]\b", watching + (ROOT / "docs" / "deploy.md").read_text())
    assert found
    rows = re.findall(r"^\| (`.*?) \| (?:namespace|this server|Redis) \|", GUIDE.read_text(), re.M)
    assert len(rows) > 14
    for row in rows:
        first = ""
        for name in re.findall(r"`(\w+)", row):
            first = first if name.startswith("_") else name.partition("_")[0]
            found.append("jq_" + (first + name if name.startswith("_") else name))
    return found


PLACES = {"dashboard": of_dashboard, "alerts": of_alerts, "keda": of_keda, "pages": of_pages}


@pytest.fixture(scope="module")
def figure(redis_url: str) -> Iterator[Named]:
    """A scrape of a master whose namespace has something of everything."""
    with MasterProcess("--redis", redis_url, "--namespace", "{metrics-named}") as master:
        jq = JQ(master.url)
        jq.operations.constrain("one", {"name": "mail"}, concurrency=1, rate={"limit": 9, "period": 1})
        jq.repeat("hourly", jq.new_job("report"), every=3600)
        scrape(master.url)
        jq.enqueue("mail", max_retry=0)
        deadline = time.monotonic() + 60
        jq.operations.queue("mail", paused=True)
        while ("jq_alerts", "kind") not in (found := scrape(master.url)).values():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield found


def scrape(url: str) -> Named:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        return Named(parse(answer.read().decode()))


class Named(Figure):
    def values(self) -> dict[tuple[str, str], set[str]]:
        """Those that a label of a figure has."""
        found: dict[tuple[str, str], set[str]] = {}
        for name, pairs in self.samples:
            for label, value in pairs:
                found.setdefault((name, label), set()).add(value)
        return found


@pytest.mark.parametrize("place", PLACES)
def test_what_is_asked_for_is_there(place: str, figure: Named) -> None:
    values = figure.values()
    asked = PLACES[place]()
    assert asked
    for expression in asked:
        names = re.findall(r"\bjq_\w+", expression)
        assert names, expression
        for name in names:
            of = re.sub(r"_(total|bucket|count|sum)$", "", name)
            assert {name, of} & figure.types.keys(), (name, expression)
        for name, selector in re.findall(r"\b(jq_\w+)\{([^}]*=[^}]*)\}", expression):
            for label, how, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', selector):
                assert (name, label) in values, expression
                if how == "=" and label in ("state", "event"):
                    assert value in values[name, label], expression


def promtool(*arguments: str | Path) -> None:
    program = shutil.which("promtool")
    if not program:
        pytest.skip("no promtool here")
    ended = subprocess.run([program, *arguments], cwd=DEPLOY, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_alert_says_what_to_do() -> None:
    headings = re.findall(r"^#### (\w+)$", GUIDE.read_text(), re.M)
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == headings
    for rule in rules:
        assert rule["annotations"]["description"]
        assert rule["annotations"]["runbook_url"] == f"docs/operating.md#{rule['alert'].lower()}"


def test_the_alerts_fire_when_they_must_and_only_then() -> None:
    promtool("check", "rules", "alerts.yml")
    promtool("test", "rules", "alerts.test.yml")
    tests = yaml.safe_load((DEPLOY / "alerts.test.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one.get("exp_alerts")}
    quiet = {one["alertname"] for one in tests[0]["alert_rule_test"] if not one.get("exp_alerts")}
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    assert fired == quiet == {rule["alert"] for rule in rules}


@pytest.mark.parametrize("place", ["dashboard", "keda"])
def test_prometheus_understands_what_is_asked(place: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"r{number}", "expr": expression.replace("$__rate_interval", "5m").replace("$queue", ".*")}
        for number, expression in enumerate(PLACES[place]())
    ]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "asked", "rules": rules}]}))
    promtool("check", "rules", path)
