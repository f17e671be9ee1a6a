-- List the first gates of a rule at which lines wait, from one to the next in the index; of all rules, if it is NULL.
WITH RECURSIVE waited (key) AS (
    SELECT min(waits_at) FROM betimes_line WHERE waits_at IS NOT NULL AND waits_at >= coalesce(?1, '')
    UNION ALL
    SELECT (SELECT min(waits_at) FROM betimes_line WHERE waits_at IS NOT NULL AND waits_at > waited.key)
    FROM waited
    WHERE waited.key IS NOT NULL AND (?1 IS NULL OR waited.key < ?1 || char(10))
)
SELECT key FROM waited
WHERE key IS NOT NULL AND (?1 IS NULL OR key = ?1 OR (key > ?1 || char(9) AND key < ?1 || char(10)))
LIMIT ?2;
