-- An amount of money is a decimal: sums of `double` and `float` differ by the order of the rows.
SELECT columns.model, columns.name AS column, '`' || columns.name || '` is a `' || type || '`: cast it to a decimal.' AS message
FROM columns
JOIN models ON models.name = columns.model AND models.kind <> 'EXTERNAL'
WHERE lower(type) IN ('double', 'float')
  AND (columns.name LIKE '%amount%' OR columns.name LIKE '%price%' OR columns.name LIKE '%revenue%')
