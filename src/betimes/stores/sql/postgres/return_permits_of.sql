-- Take back the permits that a worker's code held beyond its jobs, but for those of attempts (a JSON array of [number, fence]).
DELETE FROM betimes_permit
WHERE worker = $1
    AND (seq, fence) NOT IN (
        SELECT (attempt ->> 0)::bigint, (attempt ->> 1)::bigint FROM json_array_elements($2::json) AS attempt
    )
RETURNING gates;
