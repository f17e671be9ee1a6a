-- Add lines to jobs' logs.
INSERT INTO betimes_log (seq, number, at, attempt, source, level, text)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::text[], $6::integer[], $7::text[]
);
