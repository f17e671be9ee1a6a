-- Declare a worker dead, if its lease is still what it was: its beats change nothing any more.
-- One whose claim or beat is under way is left for the next time.
WITH worker AS MATERIALIZED (
    SELECT id FROM betimes_worker WHERE id = $1 AND lease_until = $2::bigint FOR UPDATE SKIP LOCKED
)
UPDATE betimes_worker SET is_dead = 1 WHERE id = (SELECT id FROM worker);
