"""The dashboard and the alert rules read only metrics and labels that jobgate has, and each alert has its runbook."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.telemetry.metrics import DefinedMetric, defined_metrics, label_names, metric_names
from tests.support.telemetry.promtool import promtool

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text()
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text())
RULES = [
    rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES}
# Labels that Prometheus, its discovery of targets, the workers and histograms add.
ADDED_LABELS = {"namespace", "job", "instance", "process", "le"}
OF_PROCESSES = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"}
EXPRESSIONS = {
    f"{panel['title']}: {target['legendFormat']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
} | {name: rule["expr"] for name, rule in ALERTS.items()}


def known_series() -> dict[str, DefinedMetric]:
    return {name: metric for metric in defined_metrics() for name in metric.series}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=list(EXPRESSIONS))
def test_an_expression_reads_what_exists(expression: str) -> None:
    known, names = known_series(), metric_names(expression)
    assert names
    assert names - OF_PROCESSES <= known.keys()
    labels = {label for name in names - OF_PROCESSES for label in known[name].labels}
    assert label_names(expression) <= labels | ADDED_LABELS


@pytest.mark.parametrize(
    ("expression", "names", "labels"),
    [
        ("sum by (a) (rate(x_total{b=~\"c\", d!='e'}[5m])) > bool 10e9", {"x_total"}, {"a", "b", "d"}),
        ("max(x) - on (a) group_right () y and z == 1", {"x", "y", "z"}, {"a"}),
        ('histogram_quantile(0.5, sum by (le) (rate(x_bucket[$__rate_interval]))) or absent(y{k="v > w"})',
         {"x_bucket", "y"}, {"le", "k"}),
    ],
)  # fmt: skip
def test_names_and_labels_of_expressions_are_found(expression: str, names: set[str], labels: set[str]) -> None:
    assert (metric_names(expression), label_names(expression)) == (names, labels)


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for expression in EXPRESSIONS.values() for name in metric_names(expression)}
    assert [metric.name for metric in defined_metrics() if not metric.series & shown] == []


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    paragraphs = dict(re.findall(r"^## (\w+)\n\n(\w.+)$", RUNBOOKS, re.MULTILINE))
    assert paragraphs.keys() == ALERTS.keys()
    assert {name: rule["annotations"]["runbook"] for name, rule in ALERTS.items()} == {
        name: f"docs/runbooks.md#{name.lower()}" for name in ALERTS
    }


@pytest.mark.parametrize("rule", RULES, ids=list(ALERTS))
def test_an_alert_says_what_is_wrong_and_how_urgent_it_is(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert re.match(r"^.+\.$", rule["annotations"]["summary"])


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    tests = yaml.safe_load((MONITORING / "alerts_test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == ALERTS.keys()
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == ALERTS.keys()


@pytest.mark.parametrize("arguments", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]])
def test_promtool_accepts_the_rules(arguments: list[str]) -> None:
    promtool(*arguments, cwd=MONITORING)


def test_promtool_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    queries = {expression.replace("$__rate_interval", "5m") for expression in EXPRESSIONS.values()}
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(sorted(queries))]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))
