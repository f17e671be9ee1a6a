-- Read, of live jobs by their numbers (a JSON array), only what may change, and lock them; not what others have locked.
SELECT seq, status, run_at, sort_key, attempt, fence, worker, started_at, expires_at, unmet, parked, cancel_requested,
    rare, awaited
FROM betimes_live
WHERE seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))
FOR UPDATE SKIP LOCKED;
