MODEL (name shop.shown, kind VIEW);
SELECT total FROM shop.total