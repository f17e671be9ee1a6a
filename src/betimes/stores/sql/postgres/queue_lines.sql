-- Read the lines of a queue, those that wait nowhere first, each with where its head stands; a bounded number.
SELECT lane, gates, head_key, head_seq, waits_at FROM betimes_line
WHERE queue = $1
ORDER BY waits_at IS NOT NULL, head_key, head_seq
LIMIT $2;
