-- Add lines to jobs' logs.
INSERT INTO betimes_log (seq, number, at, attempt, source, level, text) VALUES (?, ?, ?, ?, ?, ?, ?);
