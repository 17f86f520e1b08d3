-- A column whose description says `PII` reaches an exposure only masked.
-- The description of a masked column says `masked`.
WITH RECURSIVE pii AS (
  SELECT model, name, model || '.' || name AS origin
  FROM columns
  WHERE description LIKE '%PII%' AND description NOT LIKE '%masked%'
  UNION
  SELECT edge.model, edge.column, pii.origin
  FROM pii
  JOIN column_lineage AS edge ON edge.from_model = pii.model AND edge.from_column IN (pii.name, '*')
  LEFT JOIN columns AS target ON target.model = edge.model AND target.name = edge.column
  WHERE edge.how <> 'decides_rows' AND coalesce(target.description, '') NOT LIKE '%masked%'
)
SELECT
  pii.model,
  pii.name AS column,
  'the exposure `' || exposures.name || '` reads `' || pii.origin || '`, which is PII, without a mask.' AS message
FROM pii
JOIN exposures ON exposures.model = pii.model
