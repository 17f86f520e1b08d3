-- A column that an exposure can show has a description.
SELECT columns.model, columns.name AS column, '`' || columns.name || '` has no description, and an exposure reads it.' AS message
FROM columns
WHERE columns.description = '' AND columns.model IN (SELECT model FROM exposures)
