MODEL (name shop.total, kind FULL);
SELECT sum(price) AS total, count(*) AS items FROM shop.daily