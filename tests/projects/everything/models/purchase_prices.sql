MODEL (
  name shop.purchase_prices,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key item_id,
    columns [paid],
    invalidate_hard_deletes true
  )
);

SELECT item_id, paid
FROM raw.prices
