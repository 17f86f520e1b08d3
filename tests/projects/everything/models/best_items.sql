MODEL (
  name shop.best_items,
  kind FULL,
  description 'The items that sell best, counted at night.',
  gateway night
);

JINJA_QUERY_BEGIN;
SELECT item_id, sold
FROM (
  SELECT item_id, sold, ROW_NUMBER() OVER (ORDER BY sold DESC, item_id) AS place
  FROM (
    SELECT item_id, SUM(quantity) AS sold
    FROM shop.orders
    {% if true %}GROUP BY item_id{% endif %}
  )
)
WHERE place <= {{ var('best') }}
JINJA_END;
