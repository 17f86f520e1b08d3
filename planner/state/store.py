"""The state store: what is where, what is loaded, who may change it; SQLite or PostgreSQL, one schema for both.

One class, told in chapters, each upon the one before: `Leases`, `KnownContents`, `Timelines`, `Environments`,
`Promotions`, `Plans`, `Restatements`, `Transfers`.
"""

from planner.state.transfers import Transfers


class StateStore(Transfers):
    """Everything mergeplan remembers about one project; safe to share between threads.

    >>> store = StateStore("sqlite:///.mergeplan/state.db", project="shop/models")
    """
