"""What the catalog says of a table or view: where its rows lie, and whether the files are its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

BATCH = re.compile(r"/mergeplan-[0-9a-f]{32}$")
OWN_PLACE = re.compile(r"mergeplan\.place=([0-9a-f]+)")  # in hexadecimal digits, in which no word can be found


@dataclass(frozen=True)
class Described:
    """What the catalog says about a table or view."""

    details: dict[str, str]
    comments: dict[str, str]  # of the columns

    @property
    def is_view(self) -> bool:
        return self.details.get("Type") == "VIEW"

    @property
    def location(self) -> str:
        return self.details["Location"]

    @property
    def base(self) -> str:
        """The place where the table was created, below which its batches lie.

        A table property could say so more plainly, but Spark blacks out the value of any in which it finds
        a word like `url` or `token`, and a path may well hold one.
        """
        told = OWN_PLACE.search(self.details.get("Table Properties", ""))
        return bytes.fromhex(told[1]).decode() if told else BATCH.sub("", self.location)

    @property
    def has_others_files(self) -> bool:
        """True when it points at files of the table whose rows it took over."""
        return OWN_PLACE.search(self.details.get("Table Properties", "")) is not None

    @property
    def mark(self) -> str:
        """Of the batch that was merged last; what stands there otherwise is no mark."""
        own = BATCH.search(self.location) and self.location.startswith(f"{self.base}/")
        return self.location[-32:-16] if own else ""
