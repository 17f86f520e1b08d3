"""The state store: what is where, what is loaded, who may change it; SQLite or PostgreSQL, one schema for both.

One class, told in chapters, each upon the one before: `Leases`, `KnownContents`, `Timelines`, `Environments`,
`Promotions`, `Plans`, `Restatements`, `Transfers`.
"""

from planner.state.environments import Action, Revision
from planner.state.leases import Holder, Lease
from planner.state.plans import SavedPlan
from planner.state.promotions import Promotion, Status
from planner.state.timelines import PhysicalTable
from planner.state.transfers import Transfers

__all__ = ["Action", "Holder", "Lease", "PhysicalTable", "Promotion", "Revision", "SavedPlan", "StateStore", "Status"]


class StateStore(Transfers):
    """Everything mergeplan remembers about one project; safe to share between threads.

    >>> store = StateStore("sqlite:///.mergeplan/state.db", project="shop/models")
    """
