-- Let nothing of a queue be claimed.
INSERT OR IGNORE INTO betimes_paused_queue (queue) VALUES (?);
