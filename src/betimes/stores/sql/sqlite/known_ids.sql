-- Tell which of these ids (a JSON array) have been seen before.
SELECT id FROM betimes_job WHERE id IN (SELECT value FROM json_each(?1))
UNION
SELECT id FROM betimes_finished WHERE id IN (SELECT value FROM json_each(?1));
