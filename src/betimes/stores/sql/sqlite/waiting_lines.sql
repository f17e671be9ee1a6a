-- Read the first lines that wait at a gate, in one queue and lane.
SELECT json_array(id, queue, lane, gates, head_key, head_seq, waits_at) AS record FROM betimes_line
WHERE waits_at = ? AND queue = ? AND lane = ?
ORDER BY head_key, head_seq
LIMIT ?;
