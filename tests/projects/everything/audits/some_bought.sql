AUDIT (
  name some_bought,
  defaults (least = 1)
);

SELECT * FROM @this_model WHERE quantity < @least
