"""What the day after the last one will bring, as pandas sees it: the mean of the days."""

import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model


@model(
    "shop.forecast",
    kind="FULL",
    columns={"day": "string", "cents": "bigint"},
    audits=[("not_null", {"columns": ["cents"]})],
)
def execute(context: ExecutionContext, **kwargs: t.Any) -> pd.DataFrame:
    sales = context.fetchdf(f"SELECT day, cents FROM {context.table('shop.daily_sales')}")
    return pd.DataFrame({"day": [sales["day"].max()], "cents": [int(sales["cents"].mean())]})
