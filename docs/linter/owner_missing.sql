-- A table that is computed has an owner.
SELECT name AS model
FROM models
WHERE owner = '' AND kind NOT IN ('SEED', 'EXTERNAL', 'EMBEDDED')
