-- A model of the schema `mart` reads no raw table: only models of other layers.
SELECT
  lineage.model,
  '`' || lineage.reads || '` is a raw table: read a model of another layer that cleans it.' AS message
FROM lineage
LEFT JOIN models AS source ON source.name = lineage.reads
WHERE lineage.model LIKE 'mart.%' AND (source.name IS NULL OR source.kind = 'EXTERNAL')
