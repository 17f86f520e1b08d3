MODEL (
  name shop.sales_@{city},
  kind FULL,
  blueprints (
    (city := bern),
    (city := rome)
  )
);

SELECT v.item_id, SUM(v.cents) AS cents
FROM shop.order_values AS v
JOIN shop.customers AS c ON v.customer_id = c.customer_id AND c.valid_to IS NULL
WHERE LOWER(c.city) = @'@{city}'
GROUP BY v.item_id
