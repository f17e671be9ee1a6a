-- Let a queue be claimed from again.
DELETE FROM betimes_paused_queue WHERE queue = $1;
