-- Remember what became of instants; one that was decided before stays as it was.
INSERT INTO betimes_fire (
    schedule, at, by_hand, first_at, count, is_exact, outcome, decided_at, job_id, moved_from
)
SELECT * FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::text[], $8::bigint[],
    $9::text[], $10::text[]
)
ON CONFLICT DO NOTHING;
