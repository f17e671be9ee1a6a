-- End the lease of a worker that goes: its claims find nothing any more. One that is under way is waited for.
UPDATE betimes_worker SET is_dead = 1 WHERE id = $1;
