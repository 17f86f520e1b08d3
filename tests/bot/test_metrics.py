"""The Grafana dashboard and the alerts of Prometheus name what /metrics has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from mergeplan.bot import metrics

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = DOCS / "grafana" / "mergeplan.json"
ALERTS = DOCS / "prometheus" / "alerts.yml"
CASES = Path(__file__).parent / "alerts_test.yml"  # for promtool
(GROUP,) = yaml.safe_load(ALERTS.read_text())["groups"]
LABELS = {
    f"{value._name}{'_total' if value._type == 'counter' else ''}": set(value._labelnames)
    for value in vars(metrics).values()
    if isinstance(value, MetricWrapperBase)
}


def queries(value: Any) -> Iterator[str]:
    """Every query of the dashboard."""
    for key, element in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if key in ("expr", "query") and isinstance(element, str) and "(" in element:
            yield element
        else:
            yield from queries(element)


def metrics_in(texts: list[str]) -> set[str]:
    return {name for text in texts for name in re.findall(r"\b(?:mergeplan|process)_\w+", text)}


def check_labels(texts: list[str], others: set[str]) -> None:
    """A query has labels of its metrics, and those that Prometheus adds."""
    for text in texts:
        used = {label.strip() for group in re.findall(r"by \(([^)]*)\)", text) for label in group.split(",")}
        used |= set(re.findall(r'(\w+)(?:=~|!=|=)"', text))
        names = set().union(*(LABELS.get(name, set()) for name in re.findall(r"mergeplan_\w+", text)))
        assert used <= names | others, text


def test_each_metric_and_label_that_the_dashboard_names_exists() -> None:
    texts = list(queries(json.loads(DASHBOARD.read_text())))
    process = {family.name for family in REGISTRY.collect() if family.name.startswith("process_")}

    assert metrics_in(texts) <= LABELS.keys() | process
    assert metrics_in(texts) >= LABELS.keys(), "a metric that nobody sees"
    check_labels(texts, {"instance"})


def test_each_metric_and_label_that_an_alert_names_exists() -> None:
    texts = [rule["expr"] for rule in GROUP["rules"]]

    assert metrics_in(texts) == LABELS.keys(), "a metric without an alert, or an alert without a metric"
    check_labels(texts, {"job"})
    assert [text for text in texts if 'job="mergeplan"' not in text] == []


def test_each_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in GROUP["rules"]:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert all(text.endswith(".") for text in rule["annotations"].values()), rule["alert"]


def test_each_alert_has_a_case_that_promtool_runs() -> None:
    cases = yaml.safe_load(CASES.read_text())
    fired = set(re.findall(r'alertname="(\w+)"', CASES.read_text()))

    assert [(CASES.parent / name).resolve() for name in cases["rule_files"]] == [ALERTS]
    assert fired == {rule["alert"] for rule in GROUP["rules"]}


@pytest.mark.parametrize("arguments", [("check", ALERTS), ("test", CASES)], ids=["check", "test"])
def test_promtool_accepts_the_alerts_and_their_cases(arguments: tuple[str, Path]) -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("no promtool: apt-get install prometheus")
    verb, file = arguments

    done = subprocess.run(
        [promtool, verb, "rules", str(file)], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_result_is_counted_from_the_start_so_that_an_alert_sees_its_first_event() -> None:
    text = generate_latest().decode()
    results = {rule["alert"]: re.findall(r'result="(\w+)"', rule["expr"]) for rule in GROUP["rules"]}

    for result in {result for names in results.values() for result in names}:
        assert f'_total{{result="{result}"}}' in text
