-- Declare a worker dead: its beats change nothing any more.
UPDATE betimes_worker SET is_dead = 1 WHERE id = ?;
