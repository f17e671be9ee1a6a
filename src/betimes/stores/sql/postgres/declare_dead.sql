-- Declare a worker dead, if its lease is still what it was: its beats change nothing any more.
UPDATE betimes_worker SET is_dead = 1 WHERE id = $1 AND lease_until = $2::bigint;
