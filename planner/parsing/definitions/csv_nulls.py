"""Texts of CSV cells that are NULL, by the format of a project."""

from __future__ import annotations

# of pandas, and so of SQLMesh, unless `keep_default_na` is false
PANDAS_NULLS = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
                "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
DBT_NULLS = ("", "null")  # of agate, and so of dbt: in any case, with spaces around them
