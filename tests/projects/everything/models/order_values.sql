MODEL (
  name shop.order_values,
  kind EMBEDDED
);

SELECT o.order_id, o.order_date, o.customer_id, o.item_id, o.quantity, o.quantity * i.cents AS cents
FROM shop.orders AS o
JOIN shop.items AS i ON o.item_id = i.item_id
