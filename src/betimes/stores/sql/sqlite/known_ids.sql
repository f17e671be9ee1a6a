-- Tell whether any of these ids (a JSON array) has been seen before.
SELECT EXISTS (SELECT 1 FROM betimes_job WHERE id IN (SELECT value FROM json_each(?1)))
    OR EXISTS (SELECT 1 FROM betimes_finished WHERE id IN (SELECT value FROM json_each(?1)));
