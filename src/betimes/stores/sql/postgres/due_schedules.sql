-- List the schedules that are due, earliest first, behind one.
SELECT * FROM betimes_plan
WHERE paused = 0 AND next_fire_at IS NOT NULL AND next_fire_at <= $1::bigint AND (next_fire_at, id) > ($2::bigint, $3)
    AND ($4::bigint IS NULL OR last_fire_at > $4::bigint)
ORDER BY next_fire_at, id
LIMIT $5;
