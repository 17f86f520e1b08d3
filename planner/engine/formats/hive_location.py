"""The location of the rows of a parquet or ORC table, from the catalog's description of it."""

import re
from dataclasses import dataclass

from mergeplan.planner.engine.spark.described import Described

BATCH = re.compile(r"/mergeplan-[0-9a-f]{32}$")
PLACE = "mergeplan.place"  # the property of a table that points at files of another one
OVERWRITE = "mergeplan.overwrite"  # the property that names the folder of the last batch whose query read the table
OWN_OVERWRITE = re.compile(r"mergeplan\.overwrite=(mergeplan-[0-9a-f]{32})")
OWN_PLACE = re.compile(r"mergeplan\.place=([0-9a-f]+)")  # in hexadecimal digits, in which no word can be found
ELSEWHERE = re.compile(r"at:[0-9a-f]+")


def is_batch(place: str) -> bool:
    """Return True for the folder of a batch, and False for the location where a table was created."""
    return BATCH.search(place) is not None


@dataclass(frozen=True)
class HiveLocation:
    known: Described

    @property
    def location(self) -> str:
        return self.known.details["Location"]

    @property
    def base(self) -> str:
        """The location where the table was created, below which its batches are stored.

        A table property could state it more plainly, but Spark redacts the value of any in which it finds a word like
        `url` or `token`, and a path may well contain one.
        """
        place = OWN_PLACE.search(self.known.details.get("Table Properties", ""))
        return bytes.fromhex(place[1]).decode() if place else BATCH.sub("", self.location)

    @property
    def has_others_files(self) -> bool:
        """True if the table points to files of the table whose rows it took over."""
        return OWN_PLACE.search(self.known.details.get("Table Properties", "")) is not None

    @property
    def lists_partitions(self) -> bool:
        return "Partition Provider" in self.known.details

    @property
    def batch_id(self) -> str:
        """The id of the batch that was merged last, or ''; after any other write, digits that are no id."""
        is_batch_folder = BATCH.search(self.location) and self.location.startswith(f"{self.base}/")
        return self.location[-32:-16] if is_batch_folder else ""

    @property
    def overwrite(self) -> str:
        """The folder, below the base, of the last batch whose query read the table; '' if none is recorded."""
        batch = OWN_OVERWRITE.search(self.known.details.get("Table Properties", ""))
        return batch[1] if batch else ""

    @property
    def as_property(self) -> str:
        """The location as a property stores it: relative to the base, or in hexadecimal digits if outside of it."""
        if self.location == self.base or self.location.startswith(f"{self.base}/"):
            return self.location.removeprefix(self.base).lstrip("/")
        return f"at:{self.location.encode().hex()}"

    def resolve_property(self, text: str) -> str:
        if ELSEWHERE.fullmatch(text):
            return bytes.fromhex(text.removeprefix("at:")).decode()
        return f"{self.base}/{text}".rstrip("/")
