"""The state store: what is where, what is loaded, who may change it; SQLite or PostgreSQL, one schema for both."""

from datetime import datetime

from mergeplan.planner.cache.store import NO_CACHE, Cache
from mergeplan.planner.state.contents import KnownContents
from mergeplan.planner.state.costs import Costs
from mergeplan.planner.state.environments import Environments
from mergeplan.planner.state.intervals import Intervals
from mergeplan.planner.state.leases import Leases
from mergeplan.planner.state.operations import RunningWrites
from mergeplan.planner.state.overrides import Overrides
from mergeplan.planner.state.passed.audit_results import AuditHistory
from mergeplan.planner.state.passed.passed_audits import PassedAudits
from mergeplan.planner.state.passed.passed_tests import PassedTests
from mergeplan.planner.state.passed.refuted_claims import RefutedClaims
from mergeplan.planner.state.physical_tables import PhysicalTables
from mergeplan.planner.state.plans import Plans
from mergeplan.planner.state.promotions import Promotions
from mergeplan.planner.state.restatements import Restatements
from mergeplan.planner.state.retention import Retention
from mergeplan.planner.state.runs.run_records import Runs
from mergeplan.planner.state.snapshots import Snapshots
from mergeplan.planner.state.transaction import Database
from mergeplan.planner.state.transfers import Transfers


class StateStore:
    """Everything mergeplan remembers about one project, one small store a noun; safe to share between threads.

    store = StateStore("sqlite:///.mergeplan/state.db", project="shop/models")
    store.environments.get("prod").revision
    """

    def __init__(self, url: str, project: str = "", cache: Cache = NO_CACHE, *, migrates: bool = False) -> None:
        self.database = Database(url, project, migrates=migrates)
        self.leases = Leases(self.database)
        self.snapshots = Snapshots(self.database, cache)
        self.environments = Environments(self.database, self.snapshots)
        self.promotions = Promotions(self.database, self.environments)
        self.tables = PhysicalTables(self.database)
        self.intervals = Intervals(self.database)
        self.contents = KnownContents(self.database)
        self.running_writes = RunningWrites(self.database)
        self.costs = Costs(self.database)
        self.passed_audits = PassedAudits(self.database)
        self.audit_results = AuditHistory(self.database)
        self.passed_tests = PassedTests(self.database)
        self.plans = Plans(self.database)
        self.overrides = Overrides(self.database)
        self.refuted_claims = RefutedClaims(self.database)
        self.restatements = Restatements(self.database, self.environments, self.snapshots, self.tables)
        self.runs = Runs(self.database)
        self.retention = Retention(self.database)
        self.transfers = Transfers(self.database)

    def mark(self) -> str:
        """Return a text that changes with every environment and the time that a table holds."""
        return f"{self.environments.generation()} {self.intervals.digest()}"

    def now(self) -> datetime:
        """Return the time of the database's clock (UTC)."""
        with self.database.reading() as tx:
            return tx.now()

    def close(self) -> None:
        self.database.close()
