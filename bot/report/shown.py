"""What the bot's texts are made of: the record of a pull request beside the record of prod. Pure data."""

from dataclasses import dataclass

from mergeplan.bot.records import ProdRecord, PullRecord


@dataclass(frozen=True)
class Shown:
    record: PullRecord
    prod: ProdRecord

    def write_command(self, command: str) -> str:
        """Return a command as it is typed here: with the namespace, and the project where there are several."""
        project_option = f" --project {self.record.place.project}" if self.record.place.project else ""
        return (f"/{self.prod.namespace} {command[1:]}" if self.prod.namespace else command) + project_option
