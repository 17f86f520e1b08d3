-- what was sold, without what costs nothing
CREATE TEMPORARY VIEW sold AS
SELECT id, code, price FROM raw.items WHERE price > 0;

CREATE MATERIALIZED VIEW orders
USING parquet
PARTITIONED BY (code)
COMMENT 'One row for each order.'
TBLPROPERTIES ('team' = 'sales')
AS
WITH sold_now AS (SELECT * FROM sold)
SELECT sold_now.id, sold_now.price * 100 AS cents, sold_now.code FROM sold_now;
