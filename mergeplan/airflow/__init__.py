"""Airflow 3 runs an environment as it was promoted; see docs/guides/airflow.md. `pip install 'mergeplan[airflow]'`.

from mergeplan.airflow import MergeplanDag
dag = MergeplanDag("shop", schedule_file="/srv/airflow/schedules/shop.json", folder="/srv/shop")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

HOMES = {
    "mergeplan.airflow.dags": ("MergeplanDag", "MergeplanMaintenanceDag", "MergeplanTaskGroup", "view_asset"),
    "mergeplan.airflow.place": ("Place",),
}

if TYPE_CHECKING:
    from mergeplan.airflow.dags import MergeplanDag as MergeplanDag
    from mergeplan.airflow.dags import MergeplanMaintenanceDag as MergeplanMaintenanceDag
    from mergeplan.airflow.dags import MergeplanTaskGroup as MergeplanTaskGroup
    from mergeplan.airflow.dags import view_asset as view_asset
    from mergeplan.airflow.place import Place as Place
else:
    __all__ = sorted(name for names in HOMES.values() for name in names)

    def __getattr__(name: str) -> object:
        from mergeplan.lazy_names import import_name

        return import_name(__name__, HOMES, name)

    def __dir__() -> list[str]:
        return __all__
