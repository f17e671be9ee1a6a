-- Read the first lines of a queue and lane that wait at no gate, behind a place in the order.
SELECT json_array(id, queue, lane, gates, head_key, head_seq, NULL) AS record FROM betimes_line
WHERE waits_at IS NULL AND queue = ?1 AND lane = ?2 AND (head_key, head_seq) > (?3, ?4)
ORDER BY head_key, head_seq
LIMIT ?5;
