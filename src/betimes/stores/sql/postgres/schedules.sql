-- List schedules by id, behind one; all, or those whose last decided instant is later than one.
SELECT * FROM betimes_plan
WHERE id > $1 AND ($2::bigint IS NULL OR last_fire_at > $2::bigint)
ORDER BY id
LIMIT $3;
