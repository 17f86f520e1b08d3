AUDIT (
  name every_order_has_a_customer,
  standalone true,
  blocking true
);

SELECT o.order_id
FROM shop.orders AS o
LEFT ANTI JOIN shop.customers AS c ON o.customer_id = c.customer_id
WHERE o.order_date BETWEEN @start_date AND @end_date
