-- An audit checks that a column of the grain is unique.
SELECT columns.model, columns.name AS column, 'no audit checks that the grain `' || columns.name || '` is unique.' AS message
FROM columns
WHERE is_grain
  AND NOT EXISTS (
    SELECT 1
    FROM audits
    WHERE audits.model = columns.model AND audits.column = columns.name AND audits.name LIKE '%unique%'
  )
