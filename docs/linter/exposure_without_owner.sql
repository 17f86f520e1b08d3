-- An exposure has an owner, whom a change of its models can be announced to.
SELECT model, 'the exposure `' || name || '` reads it and has no owner.' AS message
FROM exposures
WHERE owner = ''
