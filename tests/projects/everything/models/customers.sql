MODEL (
  name shop.customers,
  kind SCD_TYPE_2_BY_TIME (unique_key customer_id),
  grain (customer_id, valid_from)
);

SELECT customer_id, name, city, updated_at
FROM raw.customers
