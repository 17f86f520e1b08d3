CREATE MATERIALIZED VIEW shop.total AS
SELECT orders.code, sum(cents) AS cents, count(*) AS items
FROM orders
GROUP BY orders.code;
