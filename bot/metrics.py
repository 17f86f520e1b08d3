"""The numbers that Prometheus reads."""

from prometheus_client import Counter, Gauge

DELIVERIES = Counter("mergeplan_deliveries", "Webhook deliveries by outcome", ["result"])
RUNS = Counter("mergeplan_runs", "Planner runs by verb and exit code", ["verb", "result"])
JOBS = Counter("mergeplan_jobs", "Jobs that ended, by result", ["result"])
REFUTED = Counter("mergeplan_refuted_claims", "Models that the rules would keep and Spark's analyzer does not")
QUEUE = Gauge("mergeplan_queue", "Jobs that are due and wait")
AGE = Gauge("mergeplan_queue_age_seconds", "For how long the oldest due job has waited")
CLAIMED = Gauge("mergeplan_jobs_claimed", "Jobs being worked on")
BUDGET = Gauge("mergeplan_github_budget", "GitHub calls left, by installation", ["installation"])
OWNERS = Gauge("mergeplan_owners", "Owners where the App is installed, by state", ["owner", "state"])

# A series that begins with its first event hides that event from `increase()`.
for _result in ("accepted", "duplicate", "ignored", "refused", "not_stored"):
    DELIVERIES.labels(_result)
for _result in ("done", "superseded", "put_off", "failed"):
    JOBS.labels(_result)
