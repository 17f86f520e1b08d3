MODEL (
  name shop.buyers,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key customer_id,
    when_matched (
      WHEN MATCHED THEN UPDATE SET
        target.bought = target.bought + source.bought,
        target.last_day = GREATEST(target.last_day, source.last_day)
    ),
    merge_filter source.last_day >= '2026-01-01',
    batch_size 2
  ),
  grain customer_id
);

SELECT customer_id, SUM(quantity) AS bought, MAX(order_date) AS last_day
FROM shop.orders
WHERE order_date BETWEEN @start_date AND @end_date
GROUP BY customer_id
