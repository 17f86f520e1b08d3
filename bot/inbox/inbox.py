"""What must not be lost: deliveries by GUID, the queue of work, commands, and what we know of each pull request.

One transaction takes a delivery in: its GUID (unique), the queue key that it makes due, and the command in it. A worker
claims a due key for a while and renews its claim from time to time; when it dies, the claim ends and another worker
takes the key. The newest state is read when the key is worked on, so ten deliveries to one key are one job.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from mergeplan.bot.inbox.catalogs import Catalogs
from mergeplan.bot.inbox.commands import Commands
from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.deliveries import Deliveries
from mergeplan.bot.inbox.prods import Prods
from mergeplan.bot.inbox.progress import ProgressStore
from mergeplan.bot.inbox.publications import Publications
from mergeplan.bot.inbox.pulls import Pulls
from mergeplan.bot.inbox.queue import LEASE_SECONDS, Queue
from mergeplan.bot.inbox.repositories import Repositories
from mergeplan.bot.inbox.runs import Runs
from mergeplan.bot.inbox.tables import DECISIONS
from mergeplan.bot.projects import ROOT


class DecisionLog:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def record(self, repository: str, number: int, who: str, what: str, plan_id: str = "") -> None:
        with self._database.writing() as connection:
            row = {"repository": repository, "number": number, "who": who, "what": what, "plan_id": plan_id}
            connection.execute(DECISIONS.insert().values({**row, "at": database_seconds(connection)}))

    def list_decisions(self, repository: str, number: int) -> tuple[tuple[float, str, str, str], ...]:
        """Return each decision, oldest first: time (seconds of the epoch), person, decision and plan."""
        where = (DECISIONS.c.repository == repository, DECISIONS.c.number == number)
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(DECISIONS).where(*where).order_by(DECISIONS.c.id))
            return tuple((row.at, row.who, row.what, row.plan_id) for row in rows)


class Inbox:
    """Everything the bot remembers, one small store a noun; every method of a store is one transaction.

    `folders` are those of the projects of each repository; the argument `repository` of a method is the project's key.
    """

    def __init__(
        self,
        url: str,
        *,
        settle_seconds: float = 2.0,
        lease_seconds: float = LEASE_SECONDS,
        folders: Sequence[str] = (ROOT,),
        migrates: bool = False,
    ) -> None:
        self.database = InboxDatabase(url, migrates=migrates)
        self.queue = Queue(self.database, settle_seconds=settle_seconds, lease_seconds=lease_seconds)
        self.repositories = Repositories(self.database)
        self.deliveries = Deliveries(self.database, self.queue, self.repositories, folders)
        self.commands = Commands(self.database, self.queue)
        self.pulls = Pulls(self.database)
        self.prods = Prods(self.database)
        self.runs = Runs(self.database)
        self.progress = ProgressStore(self.database)
        self.decisions = DecisionLog(self.database)
        self.catalogs = Catalogs(self.database)
        self.publications = Publications(self.database)

    def close(self) -> None:
        self.database.close()

    def ping(self) -> None:
        """Raise RequestError when the database does not answer."""
        self.database.ping()
