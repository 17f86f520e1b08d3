MODEL (
  name shop.order_log,
  kind INCREMENTAL_UNMANAGED
);

SELECT order_id, @end_ds AS logged_on
FROM shop.orders
WHERE order_date BETWEEN @start_date AND @end_date
