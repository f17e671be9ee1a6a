-- Write where lines stand.
WITH moved (id, head_key, head_seq, waits_at) AS (
    VALUES (?, ?, ?, ?)
)
UPDATE betimes_line
SET head_key = moved.head_key,
    head_seq = moved.head_seq,
    waits_at = moved.waits_at
FROM moved
WHERE betimes_line.id = moved.id;
