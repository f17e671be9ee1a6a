-- List the first gates of a rule at which lines wait, from one to the next in the index; of all rules, if it is NULL.
WITH RECURSIVE waited (key) AS (
    (
        SELECT waits_at FROM betimes_line
        WHERE waits_at IS NOT NULL AND waits_at >= coalesce($1::text, '')
        ORDER BY waits_at
        LIMIT 1
    )
    UNION ALL
    SELECT next.key
    FROM waited CROSS JOIN LATERAL (
        SELECT waits_at FROM betimes_line
        WHERE waits_at IS NOT NULL AND waits_at > waited.key
        ORDER BY waits_at
        LIMIT 1
    ) AS next (key)
    WHERE $1::text IS NULL OR waited.key < $1::text || chr(10)
)
SELECT key FROM waited
WHERE $1::text IS NULL OR key = $1::text OR (key > $1::text || chr(9) AND key < $1::text || chr(10))
LIMIT $2;
