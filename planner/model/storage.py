"""The files of a model's table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Storage:
    """The format of the files, their properties as sorted (key, text) pairs, and the way in which rows are laid out."""

    storage_format: str = "parquet"
    physical_properties: tuple[tuple[str, str], ...] = ()
    table_format: str = ""
    partitioned_by: tuple[str, ...] = ()  # columns and expressions over them, in Spark SQL
    clustered_by: tuple[str, ...] = ()  # columns that rows are sorted by within files

    @property
    def form(self) -> str:
        return self.table_format or self.storage_format
