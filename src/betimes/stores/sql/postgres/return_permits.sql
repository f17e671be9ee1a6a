-- Take back the permits of attempts (a JSON array of [number, fence]) whose code has returned.
DELETE FROM betimes_permit
WHERE (seq, fence) IN (
    SELECT (attempt ->> 0)::bigint, (attempt ->> 1)::bigint FROM json_array_elements($1::json) AS attempt
)
RETURNING gates;
