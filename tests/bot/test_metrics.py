"""The Grafana dashboard names what /metrics has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from mergeplan.bot import metrics

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "mergeplan.json"
LABELS = {
    f"{value._name}{'_total' if value._type == 'counter' else ''}": set(value._labelnames)
    for value in vars(metrics).values()
    if isinstance(value, MetricWrapperBase)
}


def queries(value: Any) -> Iterator[str]:
    """Every query of the dashboard."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in ("expr", "query") and isinstance(each, str) and "(" in each:
            yield each
        else:
            yield from queries(each)


def test_each_metric_and_label_that_the_dashboard_names_exists() -> None:
    found = list(queries(json.loads(DASHBOARD.read_text())))
    process = {family.name for family in REGISTRY.collect() if family.name.startswith("process_")}
    named = {name for text in found for name in re.findall(r"\b(?:mergeplan|process)_\w+", text)}

    assert named <= LABELS.keys() | process
    assert named >= LABELS.keys(), "a metric that nobody sees"
    for text in found:
        used = {label.strip() for group in re.findall(r"by \(([^)]*)\)", text) for label in group.split(",")}
        used |= set(re.findall(r'(\w+)(?:=~|!=|=)"', text))
        names = set().union(*(LABELS.get(name, set()) for name in re.findall(r"mergeplan_\w+", text)))
        assert used <= names | {"instance"}, text
