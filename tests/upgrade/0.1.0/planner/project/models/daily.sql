
MODEL (
  name shop.daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1),
  audits (not_null(columns := (id)))
);
SELECT id, day, price FROM shop.items WHERE day BETWEEN @start_date AND @end_date
