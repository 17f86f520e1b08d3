MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date,
    lookback 1,
    batch_size 3
  ),
  grain order_id,
  tags (core),
  signals (open_till(first := '2026-01-01')),
  audits (not_null(columns := (order_id, order_date)), some_bought(least := 1))
);

SET spark.sql.shuffle.partitions = 2;

SELECT
  order_id::INT,          -- given by the till
  order_date::DATE,
  customer_id::INT,
  item_id::INT,
  quantity::INT
FROM raw.orders
WHERE order_date BETWEEN @start_date AND @end_date;

ANALYZE TABLE @this_model COMPUTE STATISTICS NOSCAN;

AUDIT (name no_order_of_tomorrow);
SELECT * FROM @this_model WHERE order_date > @end_date;
