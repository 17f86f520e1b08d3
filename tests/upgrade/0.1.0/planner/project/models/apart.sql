MODEL (name shop.apart, kind FULL);
SELECT 7 AS seven