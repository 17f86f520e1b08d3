MODEL (
  name shop.daily_sales,
  kind INCREMENTAL_BY_TIME_RANGE (time_column (day, '%Y%m%d')),
  tags (finance),
  grain day
);

SELECT DATE_FORMAT(order_date, 'yyyyMMdd') AS day, COUNT(*) AS orders, SUM(cents) AS cents
FROM shop.order_values
WHERE order_date BETWEEN @start_date AND @end_date
GROUP BY 1
