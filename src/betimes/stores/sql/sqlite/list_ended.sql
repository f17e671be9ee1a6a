-- List ended jobs, newest first: only those before a version, which is where the look begins.
SELECT record FROM betimes_ended
WHERE (?1 IS NULL OR status = ?1)
    AND (?2 IS NULL OR task = ?2)
    AND (?3 IS NULL OR queue = ?3)
    AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(options, '$.tags') AS tag WHERE tag.value = ?4))
    AND seq < ?5
ORDER BY seq DESC
LIMIT ?6;
