-- Forget the idempotency keys of jobs (a JSON array of numbers); not one that another transaction is about to use.
DELETE FROM betimes_key
WHERE key = ANY (ARRAY(
    SELECT key FROM betimes_key WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
    FOR UPDATE SKIP LOCKED
));
