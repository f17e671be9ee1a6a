-- List the first rates and breakers of a rule that are not at rest; of all rules, if it is NULL.
SELECT key FROM betimes_gate
WHERE (?1 IS NULL OR key = ?1 OR (key > ?1 || char(9) AND key < ?1 || char(10))) AND full_at > ?2
ORDER BY key
LIMIT ?3;
