-- Write where lines stand; the numbers are in order.
UPDATE betimes_line AS line
SET (head_key, head_seq, waits_at) = (
        SELECT ($2::bigint[])[place], ($3::bigint[])[place], ($4::text[])[place]
        FROM (SELECT width_bucket(line.id, $1::bigint[]) AS place OFFSET 0) AS moved
    )
WHERE line.id = ANY ($1::bigint[]);
