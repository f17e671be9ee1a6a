-- Write what a step or the end of a job changes of schedules.
UPDATE betimes_schedule AS schedule
SET next_fire_at = moved.next_fire_at,
    version = moved.version,
    last_fire_at = moved.last_fire_at,
    fired = moved.fired,
    skipped = moved.skipped,
    jobs = translate(moved.jobs, '[]', '{}')::bigint[],
    held_at = moved.held_at,
    awaits = moved.awaits
FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[],
    $9::bigint[]
) AS moved (id, next_fire_at, version, last_fire_at, fired, skipped, jobs, held_at, awaits)
WHERE schedule.id = ANY ($1::text[]) AND schedule.id = moved.id;
