"""A column may have any name: in every property that takes one, of every kind, through plan, apply and a second run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.naming import quote_column
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT
from tests.planner.daily import Daily

NAMES = ("a-b", "a.b", "c d", "select", "x`y", "Ünï", "n" * 200, "UPPER", "lower", "a - b", "it's", 'say "x"', "order")
REFUSED = {"delta": " ,;{}()\n\t="}
PLAIN = "a"
KINDS = {
    "FULL": ("FULL", "clustered_by ({k}), partitioned_by ({p})"),
    "VIEW": ("VIEW", ""),
    "INCREMENTAL_BY_TIME_RANGE": ("INCREMENTAL_BY_TIME_RANGE (time_column {t})", "partitioned_by ({p}, bucket(2, {k}))"),
    "INCREMENTAL_BY_UNIQUE_KEY": ("INCREMENTAL_BY_UNIQUE_KEY (unique_key {k})", "clustered_by ({k})"),
    "INCREMENTAL_BY_PARTITION": ("INCREMENTAL_BY_PARTITION", "partitioned_by ({p})"),
    "INCREMENTAL_UNMANAGED": ("INCREMENTAL_UNMANAGED", "partitioned_by ({p})"),
    "SCD_TYPE_2_BY_TIME": (
        "SCD_TYPE_2_BY_TIME (unique_key {k}, updated_at_name {t}, valid_from_name {f}, valid_to_name {e})", ""
    ),
    "SCD_TYPE_2_BY_COLUMN": (
        "SCD_TYPE_2_BY_COLUMN (unique_key ({k}), columns [{v}], valid_from_name {f}, valid_to_name {e})", ""
    ),
}
SAID = """grain ({k}), references ({k}), column_descriptions ({k} = 'the key'),
  audits (not_null(columns := ({k}, {p})), unique_combination_of_columns(columns := ({k}, {t})),
    accepted_range(column := {k}, min_v := 1))"""


def model_text(kind: str, name: str) -> str:
    """A model of the kind whose columns are all called after the name, beside plain ones that an expression would mean."""
    roles = {"k": name, "p": f"{name}_p", "t": f"{name}_t", "v": f"{name}_v", "f": f"{name}_f", "e": f"{name}_e"}
    quoted = {role: quote_column(text) for role, text in roles.items()}
    head, more = KINDS[kind]
    settings = [f"name shop.t_{kind.lower()}", f"kind {head}", *([more] if more else []), SAID]
    text = ", ".join(settings).format(**quoted)
    query = "SELECT id AS {k}, name AS {v}, name AS {p}, at AS {t}, 7 AS a, id - 7 AS b, 1 AS c, 2 AS x FROM raw.items"
    where = " WHERE at BETWEEN @start_date AND @end_date" if "INCREMENTAL" in kind else ""
    return f"MODEL ({text});\n{query.format(**quoted)}{where}"


def test_all(tmp_path: Path, engine: SparkEngine) -> None:
    import traceback
    for number, name in enumerate(NAMES):
        for kind in KINDS:
            store = StateStore(f"sqlite:///{tmp_path}/state{number}{kind}.db")
            daily = Daily(tmp_path / f"p{number}{kind}", engine, store)
            try:
                daily.has("100, 'u', date'2026-01-01'", "200, 'v', date'2026-01-01'")
                o = daily.run("2026-01-02", model_text(kind, name))
                first = daily.rows(f"shop.t_{kind.lower()}")
                daily.has("100, 'U', date'2026-01-02'", "300, 'w', date'2026-01-02'")
                daily.run("2026-01-03", model_text(kind, name))
                print("OK", kind, repr(name[:9]), o.failed if hasattr(o,"failed") else "", len(first), len(daily.rows(f"shop.t_{kind.lower()}")))
            except Exception as error:
                print("ERR", kind, repr(name[:9]), type(error).__name__, str(error)[:250].replace("\n", " "))
                if type(error).__name__ in ("KeyError","AttributeError","TypeError","ParseError"): traceback.print_exc()
            store.close()
            from tests.conftest import empty
            empty(engine)
