-- Insert new lines.
INSERT INTO betimes_line (queue, lane, gates, head_key, head_seq, waits_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[]);
