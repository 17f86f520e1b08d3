
MODEL (name shop.items, kind SEED (path '../seeds/items.csv'), columns (id INT, day DATE, price INT));
