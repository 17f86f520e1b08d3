"""What Prometheus is told."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

DELIVERIES = Counter("mergeplan_deliveries", "Webhook deliveries by what became of them", ["result"])
RUNS = Counter("mergeplan_runs", "Planner runs by verb and exit code", ["verb", "result"])
LANES = Counter("mergeplan_lanes", "Lanes worked on, by how they ended", ["result"])
QUEUE = Gauge("mergeplan_queue", "Lanes that are due and wait")
AGE = Gauge("mergeplan_queue_age_seconds", "For how long the oldest due lane has waited")
CLAIMED = Gauge("mergeplan_lanes_claimed", "Lanes being worked on")
BUDGET = Gauge("mergeplan_github_budget", "GitHub calls left, by installation", ["installation"])
OWNERS = Gauge("mergeplan_owners", "Owners where the App is installed, by how they stand", ["owner", "state"])
