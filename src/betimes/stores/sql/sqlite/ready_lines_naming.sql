-- Read lines that wait nowhere and name a gate (as JSON text).
SELECT json_array(queue, lane, gates) AS record FROM betimes_line
WHERE waits_at IS NULL AND instr(gates, ?1) > 0
LIMIT ?2;
