-- Read lines that wait nowhere and name a gate (as JSON text).
SELECT queue, lane, gates FROM betimes_line
WHERE waits_at IS NULL AND strpos(gates, $1) > 0
LIMIT $2;
