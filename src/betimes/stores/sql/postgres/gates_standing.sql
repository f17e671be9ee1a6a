-- List the first rates and breakers of a rule that are not at rest; of all rules, if it is NULL.
SELECT key FROM betimes_gate
WHERE ($1::text IS NULL OR key = $1::text OR (key > $1::text || chr(9) AND key < $1::text || chr(10)))
    AND full_at > $2::bigint
ORDER BY key
LIMIT $3;
