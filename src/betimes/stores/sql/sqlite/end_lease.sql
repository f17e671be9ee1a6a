-- End the lease of a worker that goes: its claims find nothing any more.
UPDATE betimes_worker SET is_dead = 1 WHERE id = ?;
