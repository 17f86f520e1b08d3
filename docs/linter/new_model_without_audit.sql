-- A model that the plan adds has an audit. Models that prod has already may go without.
SELECT changes.model
FROM changes
JOIN models ON models.name = changes.model AND models.kind NOT IN ('EXTERNAL', 'EMBEDDED')
WHERE changes.change = 'added' AND changes.model NOT IN (SELECT model FROM audits)
