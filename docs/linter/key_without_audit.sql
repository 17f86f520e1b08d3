-- An audit checks that a column of the unique key is not NULL: the row of a NULL key is merged with no other.
SELECT columns.model, columns.name AS column, 'no audit checks that the key `' || columns.name || '` is not NULL.' AS message
FROM columns
WHERE is_key
  AND NOT EXISTS (
    SELECT 1
    FROM audits
    WHERE audits.model = columns.model AND audits.column = columns.name AND audits.name LIKE 'not_null%'
  )
