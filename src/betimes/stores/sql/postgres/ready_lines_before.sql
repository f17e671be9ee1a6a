-- Read the lines of a queue and lane that wait nowhere and stand before a place in the order.
SELECT gates FROM betimes_line
WHERE waits_at IS NULL AND queue = $1 AND lane = $2 AND (head_key, head_seq) < ($3::bigint, $4::bigint)
ORDER BY head_key, head_seq
LIMIT $5;
