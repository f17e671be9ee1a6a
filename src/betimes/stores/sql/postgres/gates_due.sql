-- List the gates that are to be looked at by now for those that wait, the earliest first.
SELECT key FROM betimes_gate WHERE opens_at IS NOT NULL AND opens_at <= $1::bigint ORDER BY opens_at LIMIT $2;
