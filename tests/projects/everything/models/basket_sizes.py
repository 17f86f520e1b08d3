"""How many orders there are of each size, counted by a Spark frame."""

import typing as t

from pyspark.sql import DataFrame
from sqlmesh import ExecutionContext, model


@model("shop.basket_sizes", kind="FULL", columns={"quantity": "int", "orders": "bigint"})
def execute(context: ExecutionContext, **kwargs: t.Any) -> DataFrame:
    orders = context.spark.table(context.table("shop.orders"))
    return orders.groupBy("quantity").count().withColumnRenamed("count", "orders")
