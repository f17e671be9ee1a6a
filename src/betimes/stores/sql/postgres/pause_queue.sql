-- Let nothing of a queue be claimed; what an earlier pause has said stays.
INSERT INTO betimes_paused_queue (queue, paused_at, paused_by) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING;
