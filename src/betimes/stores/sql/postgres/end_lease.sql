-- End the lease of a worker that goes: its claims find nothing any more. One that is under way is waited for.
WITH worker AS MATERIALIZED (SELECT id FROM betimes_worker WHERE id = $1 FOR UPDATE)
UPDATE betimes_worker SET is_dead = 1 WHERE id = (SELECT id FROM worker);
