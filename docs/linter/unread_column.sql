-- A column of a model that others read is read by one of them.
SELECT columns.model, columns.name AS column, 'no model reads `' || columns.name || '`.' AS message
FROM columns
JOIN models ON models.name = columns.model AND models.kind <> 'EXTERNAL'
WHERE NOT (is_grain OR is_key OR is_time)
  AND columns.model IN (SELECT reads FROM lineage)
  AND columns.model NOT IN (SELECT model FROM exposures)
  AND NOT EXISTS (SELECT 1 FROM audits WHERE audits.model = columns.model AND audits.column = columns.name)
  AND NOT EXISTS (
    SELECT 1
    FROM column_lineage AS edge
    WHERE edge.from_model = columns.model AND edge.from_column IN (columns.name, '*')
  )
