-- Write how rates and breakers stand.
INSERT INTO betimes_gate (key, full_at, tripped_at, opens_at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
ON CONFLICT (key) DO UPDATE
SET full_at = excluded.full_at, tripped_at = excluded.tripped_at, opens_at = excluded.opens_at;
