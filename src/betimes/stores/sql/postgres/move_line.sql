-- Write where lines stand.
UPDATE betimes_line AS line
SET head_key = moved.head_key,
    head_seq = moved.head_seq,
    waits_at = moved.waits_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) AS moved (id, head_key, head_seq, waits_at)
WHERE line.id = ANY ($1::bigint[]) AND line.id = moved.id;
