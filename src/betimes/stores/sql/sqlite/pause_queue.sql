-- Let nothing of a queue be claimed; what an earlier pause has said stays.
INSERT OR IGNORE INTO betimes_paused_queue (queue, paused_at, paused_by) VALUES (?, ?, ?);
