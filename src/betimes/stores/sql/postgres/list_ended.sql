-- List ended jobs, newest first: only those before a version, which is where the look begins.
SELECT * FROM betimes_ended
WHERE ($1::text IS NULL OR status = $1::text)
    AND ($2::text IS NULL OR task = $2::text)
    AND ($3::text IS NULL OR queue = $3::text)
    AND (
        $4::text IS NULL
        OR $4::text = ANY (ARRAY(SELECT json_array_elements_text(options::json -> 'tags')))
    )
    AND seq < $5::bigint
ORDER BY seq DESC
LIMIT $6;
