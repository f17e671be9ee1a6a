-- Read those of these schedules (a JSON array of ids) to which the end of a job of theirs may matter.
SELECT record FROM betimes_plan
WHERE id IN (SELECT value FROM json_each(?)) AND (held_at IS NOT NULL OR awaits IS NOT NULL);
