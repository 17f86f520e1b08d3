MODEL (
  name shop.monthly_items,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by (month),
  grains ((month, item_id))
);

SELECT DATE_FORMAT(order_date, 'yyyy-MM') AS month, item_id, SUM(quantity) AS sold
FROM shop.orders
WHERE order_date BETWEEN TRUNC(@start_date, 'MM') AND @end_date
GROUP BY 1, 2
