MODEL (
  name shop.sales_summary,
  kind VIEW,
  tags (finance)
);

SELECT
  day,
  @euros(cents) AS euros,
  @EACH(@sizes, n -> orders >= n AS at_least_@n)
FROM shop.daily_sales
