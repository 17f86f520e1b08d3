MODEL (
  name shop.items,
  kind SEED (path '$root/seeds/items.csv'),
  columns (item_id INT, name STRING, cents INT),
  grain item_id,
  description 'What is sold, and for how much.',
  column_descriptions (cents = 'its price'),
  audits (unique_values(columns := (item_id)))
);
