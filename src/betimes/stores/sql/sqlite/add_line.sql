-- Insert new lines.
INSERT INTO betimes_line (queue, lane, gates, head_key, head_seq, waits_at) VALUES (?, ?, ?, ?, ?, ?);
